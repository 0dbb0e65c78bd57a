-- Makes runs, all in one transaction and one call (R1, R8): one entry of the run arrays for each run, then the nodes and the edges
-- of all of them, which name their run by its index. It only inserts, so it can take part in the caller's transaction (R6, C7).
create or replace function cyclone_submit(
  p_workflows text[], p_result_nodes text[], p_tags jsonb[], p_delays_ms bigint[], p_starts timestamptz[], p_deadlines_ms bigint[],
  p_run_index int[], p_nodes text[], p_node_types text[], p_kinds text[], p_queues text[], p_priorities int[],
  p_inputs jsonb[], p_input_specs jsonb[], p_open_deps int[], p_dependents int[], p_max_attempts int[], p_policies jsonb[],
  p_dep_index int[], p_dep_nodes text[], p_depends_on text[]
) returns table (run_index int, run_id bigint)
language plpgsql volatile
set search_path from current
as $$
begin
  return query
  select s.run_index, s.run_id
    from cyclone_submit_with_ids(
           array(select cyclone_reserve_run_ids(cardinality(p_workflows))),
           p_workflows, p_result_nodes, p_tags, p_delays_ms, p_starts, p_deadlines_ms, p_run_index, p_nodes, p_node_types,
           p_kinds, p_queues, p_priorities, p_inputs, p_input_specs, p_open_deps, p_dependents, p_max_attempts, p_policies,
           p_dep_index, p_dep_nodes, p_depends_on) s;
end
$$;
