-- cyclone_heartbeat that also writes what handlers reported since the last beat (R18): one entry for each lease, a null fraction or note
-- leaves what is stored. A lease that is skipped or gone writes nothing; its report goes with the next beat, or nowhere.
create or replace function cyclone_heartbeat_progress(
  p_owner text, p_lease_ms bigint, p_runs bigint[], p_nodes text[], p_generations int[], p_fractions real[], p_notes text[]
) returns table (outcome text, run_id bigint, node text, generation int)
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
  with listed as materialized (
    select s.run_id, s.node, l.fraction, l.note
      from unnest(p_runs, p_nodes, p_generations, p_fractions, p_notes) l(run_id, node, generation, fraction, note)
      join cyclone_steps s on s.run_id = l.run_id and s.node = l.node
     where s.state = 'running' and s.lease_owner = p_owner and s.lease_generation = l.generation
       for no key update of s skip locked
  ), renewed as (
    update cyclone_steps s
       set lease_expiry = least(v_now + cyclone_ms(p_lease_ms), s.started_at + cyclone_ms(s.timeout_ms)),
           progress = coalesce(l.fraction, case when s.progress_generation = s.lease_generation then s.progress end),
           progress_note = coalesce(l.note, case when s.progress_generation = s.lease_generation then s.progress_note end),
           progress_generation = s.lease_generation
      from listed l
     where s.run_id = l.run_id and s.node = l.node
    returning s.run_id, s.node, s.lease_generation
  )
  select array_agg(r.run_id), array_agg(r.node), array_agg(r.lease_generation) into v_renewed, v_at, v_gens from renewed r;

  if coalesce(cardinality(v_renewed), 0) < cardinality(p_runs) then
    return query select * from cyclone_unrenewed(p_owner, p_runs, p_nodes, p_generations, v_renewed, v_at, v_gens);
  end if;
end
$$;
