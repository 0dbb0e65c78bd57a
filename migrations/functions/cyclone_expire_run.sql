-- Ends one run at its deadline (R27). The caller holds the run's lock and has checked that the deadline has elapsed.
create or replace function cyclone_expire_run(p_run bigint, p_error text) returns table (
  event text, run_id bigint, node text, kind text, queue text, attempt int, generation int,
  node_type text, max_attempts int, timeout_ms bigint, input jsonb, info jsonb
)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz := cyclone_now();                -- under the lock, as in cyclone_flush
begin
  return query
  with hit as materialized (
    select s.node, s.state, s.lease_owner from cyclone_steps s
     where s.run_id = p_run and s.state not in ('completed', 'discarded', 'cancelled')
     order by s.node
       for no key update
  ), discarded as (
    update cyclone_steps s
       set state = 'discarded', error = p_error, error_kind = 'deadline', error_fingerprint = cyclone_fingerprint(s.kind, 'deadline', p_error),
           contained = false, finished_at = v_now, started_at = case when s.started_at > v_now then v_now else s.started_at end, lease_owner = null, lease_expiry = null
      from hit h
     where s.run_id = p_run and s.node = h.node
    returning s.*, h.state as was, h.lease_owner as worker
  ), logged as (
    insert into cyclone_attempts (run_id, node, generation, attempt, worker, started_at, ended_at, outcome, error, error_kind)
    select d.run_id, d.node, d.lease_generation, d.attempt, d.worker, d.started_at, v_now, 'discarded', p_error, 'deadline' from discarded d where d.was = 'running'
  ), failed as (
    update cyclone_runs r
       set state = 'failed', failed_at = v_now, finished_at = v_now, deadline_at = null, open_steps = 0,
           uncontained_discards = r.uncontained_discards + (select count(*) from discarded)::int
     where r.id = p_run
    returning r.id, r.workflow
  )
  select 'discarded', d.run_id, d.node, d.kind, d.queue, d.attempt, d.lease_generation, d.node_type, d.max_attempts, null::bigint, null::jsonb,
         jsonb_build_object('was', d.was, 'error', p_error, 'errorKind', 'deadline', 'contained', false)
    from discarded d
  union all
  select 'run_failed', f.id, null, f.workflow, null, null, null, null, null, null, null, null from failed f;
end
$$;
