-- Makes runs, all in one transaction and one call (R1, R8): one entry of the run arrays for each run, then the nodes and the edges
-- of all of them, which name their run by its index. It only inserts, so it can take part in the caller's transaction (R6, C7).
-- p_ids: reserved ids, for payloads that are bound to their run before they are stored (R38); null takes them from the sequence.
create or replace function cyclone_submit(
  p_ids bigint[],
  p_workflows text[], p_result_nodes text[], p_tags jsonb[], p_delays_ms bigint[], p_starts timestamptz[], p_deadlines_ms bigint[],
  p_run_index int[], p_nodes text[], p_node_types text[], p_kinds text[], p_queues text[], p_priorities int[],
  p_inputs jsonb[], p_input_specs jsonb[], p_open_deps int[], p_dependents int[], p_max_attempts int[], p_policies jsonb[],
  p_dep_index int[], p_dep_nodes text[], p_depends_on text[]
) returns table (run_index int, run_id bigint)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_now    timestamptz := cyclone_now();
  v_ids    bigint[] := coalesce(p_ids, array(select cyclone_reserve_run_ids(cardinality(p_workflows))));
  v_starts timestamptz[];
begin
  select array_agg(coalesce(w.starts_at, v_now + coalesce(cyclone_ms(w.delay_ms), '0')) order by w.i)
    into v_starts
    from unnest(p_delays_ms, p_starts) with ordinality w(delay_ms, starts_at, i);

  insert into cyclone_runs (id, workflow, open_steps, result_node, tags, created_at, starts_at, deadline_ms, deadline_at)
  select v_ids[w.i], w.workflow, n.nodes, w.result_node, w.tags, v_now, v_starts[w.i], w.deadline_ms, v_starts[w.i] + cyclone_ms(w.deadline_ms)
    from unnest(p_workflows, p_result_nodes, p_tags, p_deadlines_ms) with ordinality w(workflow, result_node, tags, deadline_ms, i)
    join (select m.run_index, count(*)::int as nodes from unnest(p_run_index) m(run_index) group by m.run_index) n on n.run_index = w.i;

  perform cyclone_insert_nodes(v_now, v_ids, v_starts, p_run_index, p_nodes, p_node_types, p_kinds, p_queues, p_priorities, p_inputs, p_input_specs,
    p_open_deps, p_dependents, p_max_attempts, p_policies, p_dep_index, p_dep_nodes, p_depends_on);

  return query select w.i::int, w.id from unnest(v_ids) with ordinality w(id, i);
end
$$;
