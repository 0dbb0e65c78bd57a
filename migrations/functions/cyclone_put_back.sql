-- Takes a running step off its worker and makes it claimable again at p_at: available, or paused when its run is (R26).
-- Leaves the row of the execution in cyclone_attempts. The caller holds the run's lock, has checked the lease and says in
-- p_attempt and p_reclaims what it is charged (R11, R19).
create or replace function cyclone_put_back(
  p_now timestamptz, p_run bigint, p_node text, p_event text, p_at timestamptz, p_attempt int, p_reclaims int,
  p_error text, p_error_kind text, p_stack text
) returns table (
  event text, run_id bigint, node text, kind text, queue text, attempt int, generation int,
  node_type text, max_attempts int, timeout_ms bigint, input jsonb, info jsonb
)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  insert into cyclone_attempts (run_id, node, generation, attempt, worker, started_at, ended_at, outcome, error, error_kind, panic_stack)
  select s.run_id, s.node, s.lease_generation, s.attempt, s.lease_owner, s.started_at, p_now, p_event, p_error, p_error_kind, p_stack
    from cyclone_steps s where s.run_id = p_run and s.node = p_node;

  return query
    update cyclone_steps s
       set state = case when r.state = 'paused' then 'paused' else 'available' end, lease_owner = null, lease_expiry = null,
           scheduled_at = p_at, available_at = p_now, attempt = p_attempt, reclaims = p_reclaims,
           error = coalesce(p_error, s.error), error_kind = case when p_error is null then s.error_kind else p_error_kind end,
           panic_stack = case when p_error is null then s.panic_stack else p_stack end
      from cyclone_runs r
     where s.run_id = p_run and s.node = p_node and r.id = p_run
    returning p_event, s.run_id, s.node, s.kind, s.queue, s.attempt, s.lease_generation, s.node_type, s.max_attempts, null::bigint, null::jsonb,
              jsonb_strip_nulls(jsonb_build_object('state', s.state, 'error', p_error, 'errorKind', p_error_kind, 'scheduledAt', s.scheduled_at,
                'delayMs', greatest(0, ceil(extract(epoch from s.scheduled_at - p_now) * 1000))));
end
$$;
