-- Looks for running runs that need cyclone_repair_run, from the run after p_after on (R24). Changes nothing.
-- It spends p_budget (a run that is not running costs 1, one that is 50, as it takes about so much longer; a piece that was begun is
-- finished), finds p_limit at most and stops after half a second: the last row has no run_id and says how far it came (`walked_to`), which
-- is never over a run that it has not examined, and whether that was the end of all runs.
create or replace function cyclone_stranded(p_after bigint, p_budget int, p_limit int) returns table (
  run_id bigint, workflow text, stranded boolean, problems text[], walked_to bigint, ended boolean
)
language plpgsql stable
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_stop  timestamptz := clock_timestamp() + interval '500 milliseconds';
  v_at    bigint := coalesce(p_after, 0);
  v_last  bigint;
  v_runs  bigint[];
  v_seen  int;
  v_left  int := p_budget;
  v_found int := 0;
  v_step  int;
begin
  ended := false;
  while not ended and v_left > 0 and v_found < p_limit and clock_timestamp() < v_stop loop
    -- Finished runs cost next to nothing; running ones are examined a hundred at a time.
    v_step := least(v_left, 1000);
    with piece as materialized (
      select r.id, r.state from cyclone_runs r where r.id > v_at order by r.id limit v_step
    ), running as (
      select p.id from piece p where p.state = 'running' order by p.id limit 100
    )
    select coalesce((select max(u.id) from running u having count(*) = 100), max(p.id)), count(*), (select array_agg(u.id) from running u)
      into v_last, v_seen, v_runs
      from piece p;
    ended := v_seen < v_step and (v_runs is null or cardinality(v_runs) < 100);
    v_left := v_left - v_seen - 49 * coalesce(cardinality(v_runs), 0);
    v_at := coalesce(v_last, v_at);
    for run_id, workflow, stranded, problems in select p.* from cyclone_run_problems(v_runs) p where v_runs is not null order by p.run_id loop
      return next;
      v_found := v_found + 1;
      if v_found >= p_limit then
        v_at := run_id;
        ended := false;
        exit;
      end if;
    end loop;
  end loop;
  run_id := null; workflow := null; stranded := null; problems := null; walked_to := v_at;
  return next;
end
$$;
