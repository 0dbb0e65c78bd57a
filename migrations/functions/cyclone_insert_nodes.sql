-- Inserts the nodes and edges of new runs. p_ids holds the run id for each run index, null for a run that is not to be made.
-- A node without dependencies starts in the state that its type calls for (R2).
create or replace function cyclone_insert_nodes(
  p_now timestamptz, p_ids bigint[], p_starts timestamptz[],
  p_run_index int[], p_nodes text[], p_node_types text[], p_kinds text[], p_queues text[], p_priorities int[],
  p_inputs jsonb[], p_input_specs jsonb[], p_open_deps int[], p_dependents int[], p_max_attempts int[], p_policies jsonb[],
  p_dep_index int[], p_dep_nodes text[], p_depends_on text[]
) returns void
language plpgsql volatile
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  insert into cyclone_steps (run_id, node, node_type, kind, queue, priority, state, open_deps, dependents, on_dep_failure, input, input_spec,
                             max_attempts, backoff, timeout_ms, retention_ms, scheduled_at, available_at, wait_ms, wake_at, concurrency)
  select p_ids[n.run_index], n.node, n.node_type, n.kind, n.queue, n.priority,
         case when n.open_deps = 0 then cyclone_ready_state(n.node_type) else 'pending' end,
         n.open_deps, n.dependents, coalesce(n.policy ->> 'onDepFailure', 'fail_run'), n.input, n.input_spec,
         n.max_attempts, n.policy -> 'backoff', (n.policy ->> 'timeoutMs')::bigint, (n.policy ->> 'retentionMs')::bigint,
         p_starts[n.run_index], case when n.open_deps = 0 then p_now end,
         (n.policy ->> 'waitMs')::bigint,
         case when n.open_deps = 0 then p_starts[n.run_index] + cyclone_ms((n.policy ->> 'waitMs')::bigint) end,
         (n.policy ->> 'concurrency')::int
    from unnest(p_run_index, p_nodes, p_node_types, p_kinds, p_queues, p_priorities, p_inputs, p_input_specs, p_open_deps, p_dependents,
                p_max_attempts, p_policies)
           n(run_index, node, node_type, kind, queue, priority, input, input_spec, open_deps, dependents, max_attempts, policy)
   where p_ids[n.run_index] is not null;

  if cardinality(p_dep_index) > 0 then
    insert into cyclone_deps (run_id, depends_on, node)
    select p_ids[d.run_index], d.depends_on, d.node
      from unnest(p_dep_index, p_dep_nodes, p_depends_on) d(run_index, node, depends_on)
     where p_ids[d.run_index] is not null;
  end if;
end
$$;
