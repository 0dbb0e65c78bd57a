-- The leases of a beat that were not renewed (C8): `skipped`, the row is locked right now; `gone`, the lease is no longer ours.
create or replace function cyclone_unrenewed(
  p_owner text, p_runs bigint[], p_nodes text[], p_generations int[], p_renewed bigint[], p_renewed_nodes text[], p_renewed_generations int[]
) returns table (outcome text, run_id bigint, node text, generation int)
language plpgsql stable
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
  return query
  select case when s.run_id is not null then 'skipped' else 'gone' end, l.run_id, l.node, l.generation
    from unnest(p_runs, p_nodes, p_generations) l(run_id, node, generation)
    left join cyclone_steps s on s.run_id = l.run_id and s.node = l.node and s.state = 'running' and s.lease_owner = p_owner
                             and s.lease_generation = l.generation
   where not exists (select 1 from unnest(p_renewed, p_renewed_nodes, p_renewed_generations) r(run_id, node, generation)
                      where r.run_id = l.run_id and r.node = l.node and r.generation = l.generation);
end
$$;
