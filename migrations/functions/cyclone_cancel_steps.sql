-- Cancels the open nodes of a run: the given ones, or all when p_nodes is null. The caller holds the run's lock and adjusts the
-- run. A claim that was under way when this call read the clock may have begun a step a moment later: it begins and ends with the others.
-- A running execution leaves a row in cyclone_attempts, and its event carries the generation whose transaction has to end (C3).
create or replace function cyclone_cancel_steps(p_now timestamptz, p_run bigint, p_nodes text[], p_reason text) returns table (
  event text, run_id bigint, node text, kind text, queue text, attempt int, generation int,
  node_type text, max_attempts int, timeout_ms bigint, input jsonb, info jsonb
)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  return query
  with hit as materialized (
    select s.run_id, s.node, s.state, s.lease_owner from cyclone_steps s
     where s.run_id = p_run and s.state not in ('completed', 'discarded', 'cancelled') and (p_nodes is null or s.node = any(p_nodes))
     order by s.node
       for no key update
  ), cancelled as (
    update cyclone_steps s
       set state = 'cancelled', finished_at = p_now, started_at = case when s.started_at > p_now then p_now else s.started_at end, lease_owner = null, lease_expiry = null
      from hit h
     where s.run_id = h.run_id and s.node = h.node
    returning s.run_id, s.node, s.kind, s.queue, s.attempt, s.lease_generation, s.node_type, h.state as was, h.lease_owner, s.started_at
  ), logged as (
    insert into cyclone_attempts (run_id, node, generation, attempt, worker, started_at, ended_at, outcome, error)
    select c.run_id, c.node, c.lease_generation, c.attempt, c.lease_owner, c.started_at, p_now, 'cancelled', p_reason from cancelled c where c.was = 'running'
  )
  select 'cancelled', c.run_id, c.node, c.kind, c.queue, c.attempt, c.lease_generation,
         c.node_type, null::int, null::bigint, null::jsonb, jsonb_build_object('was', c.was, 'reason', p_reason)
    from cancelled c;
end
$$;
