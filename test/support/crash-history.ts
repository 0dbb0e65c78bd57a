import type pg from 'pg';
import { guardTriggerSql } from '#cyclone/store/guard-trigger.js';
import { migrate } from '#cyclone/store/migrator.js';
import { PROBLEMS_SQL } from './engine-invariants.js';

/**
 * The schema of a crash test: the engine with its guard, the ledger of the handlers (without a key, so that what happens twice
 * shows), and a log of every change of a step that was committed. `guard_raised` counts although a raise rolls back.
 */
export async function prepareCrashSchema(client: pg.Client): Promise<void> {
  await migrate(client);
  await client.query(`
    create sequence guard_raised minvalue 0 start 0;
    create table ledger (run_id bigint not null, node text not null, attempt int not null, at timestamptz not null default clock_timestamp());
    create table keyed_ledger (run_id bigint not null, node text not null, primary key (run_id, node));
    create table step_log (
      seq bigint generated always as identity, run_id bigint not null, node text not null, was text, state text not null,
      generation int not null, claimed boolean not null
    );
    create function log_step() returns trigger language plpgsql as $log$
    begin
      insert into step_log (run_id, node, was, state, generation, claimed)
      values (new.run_id, new.node, case when tg_op = 'UPDATE' then old.state end, new.state, new.lease_generation,
              tg_op = 'UPDATE' and new.lease_generation > old.lease_generation);
      return null;
    end
    $log$;
    create trigger log_insert after insert on cyclone_steps for each row execute function log_step();
    create trigger log_update after update on cyclone_steps for each row
      when (old.state is distinct from new.state or old.lease_generation <> new.lease_generation) execute function log_step();`);
  await client.query(
    guardTriggerSql().replaceAll('raise exception', `perform nextval('guard_raised'); raise exception`),
  );
}

/**
 * The history checker: one row for each thing that is wrong. The numbers are those of the invariants: I1 one ledger row for each
 * completed step that writes one, I2 none without, I4 generations are claims, I6 no entry before its parents have completed, I7 the
 * state of a run follows from its steps (with the counters), I8 nothing stranded and no lease expired, I9 attempts and reclaims
 * are what was recorded, I11 the states of a step are one path, I12 no session is left in a transaction or waits for a lock.
 */
const HISTORY_SQL = `
with entry as (
  select s.run_id, s.node, s.state, count(l.run_id) as entries, min(l.at) as first_at
    from cyclone_steps s left join ledger l on l.run_id = s.run_id and l.node = s.node
   where s.kind not in ('plain', 'keyed')
   group by s.run_id, s.node, s.state
), recorded as (
  select a.run_id, a.node,
         count(*) filter (where a.outcome in ('retried', 'timed_out')) as charged,
         count(*) filter (where a.outcome in ('reclaimed', 'interrupted')) as reclaimed
    from cyclone_attempts a group by a.run_id, a.node
), claims as (
  select l.run_id, l.node, count(*) filter (where l.claimed) as n, max(l.generation) as highest from step_log l group by l.run_id, l.node
)
select format('I1 %s/%s has completed with %s ledger rows', run_id, node, entries) as problem from entry where state = 'completed' and entries <> 1
union all
select format('I2 %s/%s is %s and has %s ledger rows', run_id, node, state, entries) from entry where state <> 'completed' and entries > 0
union all
select format('I2 a ledger row of %s/%s, which is no step', l.run_id, l.node) from ledger l
 where not exists (select 1 from cyclone_steps s where s.run_id = l.run_id and s.node = l.node)
union all
select format('I4 %s/%s is in generation %s after %s claims', s.run_id, s.node, s.lease_generation, c.n)
  from cyclone_steps s join claims c on c.run_id = s.run_id and c.node = s.node where s.lease_generation <> c.n or c.highest <> c.n
union all
select format('I6 %s/%s has an entry from before %s completed', e.run_id, e.node, d.depends_on)
  from entry e join cyclone_deps d on d.run_id = e.run_id and d.node = e.node
  join cyclone_steps p on p.run_id = d.run_id and p.node = d.depends_on
 where e.first_at < p.finished_at
union all
select format('I8 %s/%s runs with a lease that expired at %s', run_id, node, lease_expiry) from cyclone_steps
 where state = 'running' and lease_expiry < clock_timestamp()
union all
select format('I9 %s/%s is in attempt %s, recorded %s failures', s.run_id, s.node, s.attempt, coalesce(r.charged, 0))
  from cyclone_steps s left join recorded r on r.run_id = s.run_id and r.node = s.node where s.attempt <> 1 + coalesce(r.charged, 0)
union all
select format('I9 %s/%s has %s reclaims, recorded %s', s.run_id, s.node, s.reclaims, coalesce(r.reclaimed, 0))
  from cyclone_steps s left join recorded r on r.run_id = s.run_id and r.node = s.node where s.reclaims <> coalesce(r.reclaimed, 0)
union all
select format('I11 %s/%s went from %s, but was %s', l.run_id, l.node, l.was, l.before)
  from (select s.*, lag(s.state) over (partition by s.run_id, s.node order by s.seq) as before from step_log s) l
 where l.was is distinct from l.before
union all
select 'the guard of the state machine has raised' from guard_raised where is_called
union all
select format('I12 session %s (%s) is %s: %s', a.pid, a.application_name, a.state, a.query) from pg_stat_activity a
 where a.datname = current_database() and a.pid <> pg_backend_pid() and a.state like 'idle in transaction%'
union all
select format('I12 session %s waits for a lock', l.pid) from pg_locks l where not l.granted
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
union all
select 'I7 ' || p.problem from (${PROBLEMS_SQL}) p`;

/** What is wrong with the history of everything in this database; empty when all is well. Call it while no worker is at work. */
export async function historyProblems(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ problem: string }>(HISTORY_SQL);
  return rows.map((row) => row.problem);
}
