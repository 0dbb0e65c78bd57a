-- Resumes a paused run (R26): every paused step goes back to the state of its type with the time that it had left, and what became
-- ready meanwhile is promoted. Backoffs and delays are not shifted. Refuses: not_found, not_paused.
create or replace function cyclone_resume(p_run bigint) returns table (
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
  elsif v_run.state <> 'paused' then
    return query select * from cyclone_refuse('not_paused', p_run, null, jsonb_build_object('state', v_run.state));
    return;
  end if;
  v_now := cyclone_now();                            -- under the lock, as in cyclone_flush
  update cyclone_runs r
     set state = 'running', paused_at = null, deadline_left_ms = null, deadline_at = v_now + cyclone_ms(r.deadline_left_ms)
   where r.id = p_run;
  return query
    with hit as materialized (
      select s.node from cyclone_steps s where s.run_id = p_run and s.state = 'paused' order by s.node for no key update
    )
    update cyclone_steps s
       set state = cyclone_ready_state(s.node_type), available_at = v_now, wake_at = v_now + cyclone_ms(s.wait_left_ms), wait_left_ms = null
      from hit h
     where s.run_id = p_run and s.node = h.node
    returning 'resumed', s.run_id, s.node, s.kind, s.queue, s.attempt, s.lease_generation, s.node_type, s.max_attempts, null::bigint, null::jsonb,
              jsonb_build_object('state', s.state);
  return query select 'run_resumed', p_run, null::text, v_run.workflow, null::text, null::int, null::int,
                      null::text, null::int, null::bigint, null::jsonb, null::jsonb;
  return query select * from promote_ready_steps(p_run);
end
$$;
