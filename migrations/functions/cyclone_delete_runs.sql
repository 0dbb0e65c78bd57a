-- Deletes runs with everything that belongs to them. The caller has locked them. Answers the number of steps.
create or replace function cyclone_delete_runs(p_runs bigint[]) returns bigint
language plpgsql volatile
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_steps bigint;
begin
  delete from cyclone_attempts a using unnest(p_runs) g(id) where a.run_id = g.id;
  delete from cyclone_deps d using unnest(p_runs) g(id) where d.run_id = g.id;
  delete from cyclone_steps s using unnest(p_runs) g(id) where s.run_id = g.id;
  get diagnostics v_steps = row_count;
  delete from cyclone_runs r using unnest(p_runs) g(id) where r.id = g.id;
  return v_steps;
end
$$;
