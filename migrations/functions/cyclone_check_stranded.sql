-- The running check for stranded runs (R24, R34), a part of the housekeeping: it looks at the next piece of all runs and remembers those
-- that it finds in cyclone_stranded_runs, which readers read. All workers together look at one piece a second, and begin a round once a
-- minute: the mark says where the walk stands and when the next piece is due. It moves over runs that were examined and over no others.
-- p_budget bounds a piece, see cyclone_stranded; so does half a second. Of those that it remembers it examines again the 100 that were not
-- for the longest time, and forgets what has been mended.
create or replace function cyclone_check_stranded(p_now timestamptz, p_budget int) returns void
language plpgsql volatile
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_at    bigint;
  v_ended boolean;
  v_found bigint[];
  v_again bigint[];
begin
  -- The row is the lock of the walk. A time further ahead than a round was noted by a clock that has been set back since.
  select m.run_id into v_at from cyclone_marks m
   where m.name = 'stranded' and not (m.at > p_now and m.at <= p_now + interval '1 minute')
     for no key update skip locked;
  if not found then
    return;
  end if;

  select coalesce(array_agg(s.run_id) filter (where s.stranded), '{}'), max(s.walked_to),
         bool_or(s.ended) filter (where s.run_id is null)
    into v_found, v_at, v_ended
    from cyclone_stranded(v_at, p_budget, 100) s;
  v_again := array(select f.run_id from cyclone_stranded_runs f where not f.run_id = any(v_found) order by f.checked_at limit 100);
  v_found := v_found || array(select p.run_id from cyclone_run_problems(v_again) p where p.stranded);

  delete from cyclone_stranded_runs f where f.run_id = any(v_again) and not f.run_id = any(v_found);
  insert into cyclone_stranded_runs as f (run_id, found_at, checked_at) select u.id, p_now, p_now from unnest(v_found) u(id)
    on conflict (run_id) do update set checked_at = excluded.checked_at;
  update cyclone_marks m
     set run_id = case when v_ended then 0 else v_at end, at = p_now + case when v_ended then interval '1 minute' else interval '1 second' end
   where m.name = 'stranded';
end
$$;
