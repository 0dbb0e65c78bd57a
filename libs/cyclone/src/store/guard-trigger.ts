import { COMPOSITES, TRANSITIONS, type Entity } from '../model/transitions.js';

/** Every pair of states that a row may go through, as the right side of a SQL `in`. */
function allowedPairs(entity: Entity): string {
  const pairs = new Set<string>();
  for (const row of [...TRANSITIONS, ...COMPOSITES]) {
    if (row.entity !== entity) continue;
    for (const from of typeof row.from === 'string' ? [row.from] : row.from) pairs.add(`('${from}', '${row.to}')`);
  }
  return [...pairs].join(', ');
}

function guard(entity: Entity, extraCheck: string): string {
  const table = `cyclone_${entity}s`;
  const row = entity === 'step' ? `format('step %s/%s', new.run_id, new.node)` : `format('run %s', new.id)`;
  return `
create or replace function cyclone_guard_${entity}() returns trigger language plpgsql as $guard$
declare
  v_from text := case when tg_op = 'INSERT' then 'new' else old.state::text end;
begin
  if v_from <> new.state::text and (v_from, new.state::text) not in (${allowedPairs(entity)}) then
    raise exception '% may not go from % to %', ${row}, v_from, new.state using errcode = 'CYG01';
  end if;${extraCheck.replace('ROW', row)}
  return new;
end
$guard$;
create or replace trigger cyclone_guard before insert or update on ${table}
  for each row execute function cyclone_guard_${entity}();
`;
}

/**
 * SQL that makes the database itself refuse any change of state that is not in `TRANSITIONS`, and any lease generation that
 * goes down (errcode `CYG01`). For tests: the engine does not need it.
 * Run it with search_path set to the schema of the tables; running it again replaces it.
 */
export function guardTriggerSql(): string {
  const fence = `
  if tg_op = 'UPDATE' then
    if new.lease_generation < old.lease_generation then
      raise exception '%: lease_generation may not go down from % to %', ROW, old.lease_generation, new.lease_generation
        using errcode = 'CYG01';
    end if;
  end if;`;
  return guard('step', fence) + guard('run', '');
}
