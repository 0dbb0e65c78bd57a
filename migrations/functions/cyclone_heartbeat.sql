-- Renews the leases of a process in one statement (R18), never waiting and never past started_at + timeout (R10).
-- Answers only the exceptions (C8): `skipped`, the row is locked right now and will be renewed by the next beat; `gone`, the lease is
-- no longer ours. Without a list (p_runs null) it renews by owner: while the main thread is silent nobody knows the list.
create or replace function cyclone_heartbeat(p_owner text, p_lease_ms bigint, p_runs bigint[], p_nodes text[], p_generations int[])
returns table (outcome text, run_id bigint, node text, generation int)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_now     timestamptz := cyclone_now();
  v_renewed bigint[];
  v_at      text[];
  v_gens    int[];
begin
  with mine as materialized (
    select s.run_id, s.node from cyclone_steps s
     where p_runs is null and s.state = 'running' and s.lease_owner = p_owner
       for no key update skip locked
  ), listed as materialized (
    select s.run_id, s.node
      from unnest(p_runs, p_nodes, p_generations) l(run_id, node, generation)
      join cyclone_steps s on s.run_id = l.run_id and s.node = l.node
     where s.state = 'running' and s.lease_owner = p_owner and s.lease_generation = l.generation
       for no key update of s skip locked
  ), renewed as (
    update cyclone_steps s
       set lease_expiry = least(v_now + cyclone_ms(p_lease_ms), s.started_at + cyclone_ms(s.timeout_ms))
      from (select run_id, node from mine union all select run_id, node from listed) m
     where s.run_id = m.run_id and s.node = m.node
    returning s.run_id, s.node, s.lease_generation
  )
  select array_agg(r.run_id), array_agg(r.node), array_agg(r.lease_generation) into v_renewed, v_at, v_gens from renewed r;

  if coalesce(cardinality(v_renewed), 0) < cardinality(p_runs) then
    return query select * from cyclone_unrenewed(p_owner, p_runs, p_nodes, p_generations, v_renewed, v_at, v_gens);
  end if;
end
$$;
