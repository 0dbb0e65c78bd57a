-- Discards a running step: writes the row of its last execution, then the discard with its policy (R23). A timeout says so first.
create or replace function cyclone_give_up(
  p_now timestamptz, p_run bigint, p_node text, p_outcome text, p_error text, p_error_kind text, p_stack text, p_fingerprint text
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
  select s.run_id, s.node, s.lease_generation, s.attempt, s.lease_owner, s.started_at, p_now, 'discarded', p_error, p_error_kind, p_stack
    from cyclone_steps s where s.run_id = p_run and s.node = p_node;

  if p_outcome = 'timed_out' then
    return query
      select 'timed_out', s.run_id, s.node, s.kind, s.queue, s.attempt, s.lease_generation, s.node_type, s.max_attempts, null::bigint, null::jsonb,
             jsonb_build_object('error', p_error, 'errorKind', p_error_kind)
        from cyclone_steps s where s.run_id = p_run and s.node = p_node;
  end if;
  return query select * from cyclone_discard_step(p_now, p_run, p_node, p_error, p_error_kind, p_stack, p_fingerprint);
end
$$;
