-- Pauses a running run (R26): what is available or waits becomes paused and keeps the time that it had left; what runs goes on.
-- Pausing a paused run changes nothing. Refuses: not_found, already_terminal.
create or replace function cyclone_pause(p_run bigint) returns table (
  event text, run_id bigint, node text, kind text, queue text, attempt int, generation int,
  node_type text, max_attempts int, timeout_ms bigint, input jsonb, info jsonb
)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz;
  v_run cyclone_runs;
begin
  select * into v_run from cyclone_runs r where r.id = p_run for no key update;
  if not found then
    return query select * from cyclone_refuse('not_found', p_run, null, null);
    return;
  elsif v_run.state = 'paused' then
    return;
  elsif v_run.state <> 'running' then
    return query select * from cyclone_refuse('already_terminal', p_run, null, jsonb_build_object('state', v_run.state));
    return;
  end if;
  v_now := cyclone_now();                            -- under the lock, as in cyclone_flush
  return query
    with hit as materialized (
      select s.node, s.state from cyclone_steps s
       where s.run_id = p_run and s.state in ('available', 'waiting_timer', 'waiting_signal', 'waiting_child')
       order by s.node
         for no key update
    )
    update cyclone_steps s
       set state = 'paused', wake_at = null,
           wait_left_ms = case when s.wake_at is not null then greatest(0, extract(epoch from s.wake_at - v_now) * 1000)::bigint end
      from hit h
     where s.run_id = p_run and s.node = h.node
    returning 'paused', s.run_id, s.node, s.kind, s.queue, s.attempt, s.lease_generation, s.node_type, s.max_attempts, null::bigint, null::jsonb,
              jsonb_build_object('was', h.state);
  update cyclone_runs r
     set state = 'paused', paused_at = v_now, deadline_at = null,
         deadline_left_ms = case when r.deadline_at is not null then greatest(0, extract(epoch from r.deadline_at - v_now) * 1000)::bigint end
   where r.id = p_run;
  return query select 'run_paused', p_run, null::text, v_run.workflow, null::text, null::int, null::int,
                      null::text, null::int, null::bigint, null::jsonb, null::jsonb;
end
$$;
