-- Renews the leases of a process in one statement (R18), never waiting and never past started_at + timeout (R10).
-- Answers only the exceptions (C8): `skipped`, the row is locked right now and will be renewed by the next beat; `gone`, the lease is
-- no longer ours. Without a list (p_runs null) it renews by owner: while the main thread is silent nobody knows the list.
-- It writes what handlers reported since the last beat: p_fractions and p_notes, one entry for each lease, where null leaves what is stored;
-- null as a whole when nobody did. A lease that is skipped or gone writes nothing; its report goes with the next beat, or nowhere.
create or replace function cyclone_heartbeat(
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
  with mine as materialized (
    select s.run_id, s.node, null::real as fraction, null::text as note from cyclone_steps s
     where p_runs is null and s.state = 'running' and s.lease_owner = p_owner
       for no key update skip locked
  ), listed as materialized (
    select s.run_id, s.node, l.fraction, l.note
      from unnest(p_runs, p_nodes, p_generations, p_fractions, p_notes) l(run_id, node, generation, fraction, note)
      join cyclone_steps s on s.run_id = l.run_id and s.node = l.node
     where s.state = 'running' and s.lease_owner = p_owner and s.lease_generation = l.generation
       for no key update of s skip locked
  ), beat as (
    select m.* from mine m
    union all
    select l.* from listed l
  ), renewed as (
    update cyclone_steps s
       set lease_expiry = least(v_now + cyclone_ms(p_lease_ms), s.started_at + cyclone_ms(s.timeout_ms)),
           progress = coalesce(b.fraction, case when s.progress_generation = s.lease_generation then s.progress end),
           progress_note = coalesce(b.note, case when s.progress_generation = s.lease_generation then s.progress_note end),
           progress_generation = case when b.fraction is null and b.note is null then s.progress_generation else s.lease_generation end
      from beat b
     where s.run_id = b.run_id and s.node = b.node
    returning s.run_id, s.node, s.lease_generation
  )
  select array_agg(r.run_id), array_agg(r.node), array_agg(r.lease_generation) into v_renewed, v_at, v_gens from renewed r;

  if coalesce(cardinality(v_renewed), 0) < cardinality(p_runs) then
    return query
    select case when s.run_id is not null then 'skipped' else 'gone' end, l.run_id, l.node, l.generation
      from unnest(p_runs, p_nodes, p_generations) l(run_id, node, generation)
      left join cyclone_steps s on s.run_id = l.run_id and s.node = l.node and s.state = 'running' and s.lease_owner = p_owner
                               and s.lease_generation = l.generation
     where not exists (select 1 from unnest(v_renewed, v_at, v_gens) r(run_id, node, generation)
                        where r.run_id = l.run_id and r.node = l.node and r.generation = l.generation);
  end if;
end
$$;
