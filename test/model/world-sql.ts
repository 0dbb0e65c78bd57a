export const CLOCK = `
create sequence test_clock;
create or replace function cyclone_now() returns timestamptz language sql volatile as
  $$ select 'epoch'::timestamptz + last_value * interval '1 millisecond' from test_clock $$`;

export const STORM = `select set_config('test.jitter', $1, false), set_config('cyclone.claim_entries', $2, false),
  set_config('cyclone.claim_heads', '', false)`;

/** Moments of up to 3 ms, inside the database and only where a session has asked for them. */
export const JITTER = `
create function test_jitter() returns trigger language plpgsql as $$
begin
  if current_setting('test.jitter', true) = 'on' then perform pg_sleep(random() * 0.003); end if;
  return new;
end
$$;
create trigger test_jitter before update on cyclone_steps for each row execute function test_jitter();
create trigger test_jitter before update on cyclone_runs for each row execute function test_jitter()`;

/** Writes down every state that a run or a step comes to. */
export const PATHS = `
create unlogged table test_paths (place bigint generated always as identity, key text, state text);
create function test_note() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' or old.state <> new.state then
    insert into test_paths (key, state)
    values (case tg_table_name when 'cyclone_runs' then format('run %s', to_jsonb(new) ->> 'id')
                               else format('step %s/%s', to_jsonb(new) ->> 'run_id', to_jsonb(new) ->> 'node') end, new.state);
  end if;
  return null;
end
$$;
create trigger test_note after insert or update on cyclone_steps for each row execute function test_note();
create trigger test_note after insert or update on cyclone_runs for each row execute function test_note()`;

export const RENEWED = `
select 'renewed' as event, run_id, node, lease_generation as generation from cyclone_steps
 where state = 'running' and lease_owner = $1
   and lease_expiry = least(cyclone_now() + $2 * interval '1 ms', started_at + timeout_ms * interval '1 ms')`;

export const HANGERS = `
select format('connection %s: %s, waits for %s', pid, state, coalesce(wait_event_type, 'nothing')) as line
  from pg_stat_activity
 where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid() and (state like 'idle in transaction%' or wait_event_type = 'Lock')`;

const ms = (column: string) => `coalesce((extract(epoch from ${column}) * 1000)::bigint::text, '-')`;

/** What `linesOf` says of the model. What a state does not use is not looked at. */
export const LINES = `
select format('run %s: %s, %s open, %s uncontained, deadline %s', id, state, open_steps, uncontained_discards, ${ms('deadline_at')}) as line
  from cyclone_runs
union all
select format('step %s/%s: %s, attempt %s of %s, %s reclaims, generation %s, open %s, owner %s until %s, scheduled %s, wakes %s, error %s, contained %s',
         run_id, node, state, attempt, max_attempts, reclaims, lease_generation,
         case when state in ('completed', 'discarded', 'cancelled') then '-' else open_deps::text end,
         coalesce(lease_owner, '-'), ${ms('lease_expiry')}, ${ms('scheduled_at')},
         case when state like 'waiting%' then ${ms('wake_at')} else '-' end, coalesce(error_kind, '-'), coalesce(contained::text, '-'))
  from cyclone_steps`;

export const ATTEMPTS = `select format('%s/%s/%s: attempt %s %s', run_id, node, generation, attempt, outcome) as line from cyclone_attempts`;
