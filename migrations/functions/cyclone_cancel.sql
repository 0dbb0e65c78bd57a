-- Cancels a run that is not terminal, and everything open in it (R24, R28). Refuses: not_found, already_terminal.
create or replace function cyclone_cancel(p_run bigint, p_reason text) returns table (
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
  elsif v_run.state not in ('running', 'paused') then
    return query select * from cyclone_refuse('already_terminal', p_run, null, jsonb_build_object('state', v_run.state));
    return;
  end if;
  v_now := cyclone_now();                            -- under the lock, as in cyclone_flush
  return query select * from cyclone_cancel_steps(v_now, p_run, null, coalesce(p_reason, 'the run was cancelled'));
  update cyclone_runs r
     set state = 'cancelled', open_steps = 0, cancelled_at = v_now, finished_at = v_now, paused_at = null, deadline_at = null, cancel_reason = p_reason
   where r.id = p_run;
  return query select 'run_cancelled', p_run, null::text, v_run.workflow, null::text, null::int, null::int,
                      null::text, null::int, null::bigint, null::jsonb, jsonb_build_object('reason', p_reason);
end
$$;
