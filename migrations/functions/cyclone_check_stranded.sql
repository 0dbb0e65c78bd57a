-- The running check for stranded runs (R24, R34): bounded however many runs there are, and cheap enough for every call of stats().
-- It examines runs that were found before, those of some open steps that nobody claims, the newest, and the next piece of a walk that goes
-- round all runs. What it finds is remembered until it is mended. In a read-only session, or while another one is at it, it only looks.
create or replace function cyclone_check_stranded(p_scan int) returns table (run_id bigint, workflow text, problems text[])
language plpgsql volatile
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_stop  timestamptz := clock_timestamp() + interval '500 milliseconds';
  v_at    bigint;
  v_ended boolean;
  v_walk  bigint[];
  v_runs  bigint[];
  v_found bigint[] := '{}';
  v_seen  bigint[] := '{}';
  v_piece bigint[];
begin
  if not current_setting('transaction_read_only')::boolean then
    select m.value into v_at from cyclone_marks m where m.name = 'stranded' for no key update skip locked;
  end if;
  select array_agg(s.run_id) filter (where s.stranded), max(s.walked_to), bool_or(s.ended) into v_walk, v_at, v_ended
    from cyclone_stranded(v_at, p_scan, 100) s
   where v_at is not null;

  select array_agg(r.id) into v_runs
    from (
      (select f.run_id as id from cyclone_stranded_runs f order by f.run_id limit 1000)
      union
      (select s.run_id from cyclone_steps s
        where s.state in ('pending', 'waiting_timer', 'waiting_signal', 'waiting_child', 'paused') limit p_scan)
      union
      (select r.id from cyclone_runs r order by r.id desc limit p_scan)
      union
      select w.id from unnest(v_walk) w(id)
    ) c
   cross join lateral (select t.id from cyclone_runs t where t.id = c.id and t.state || '' = 'running' offset 0) r; -- by key (C1)
  for i in 1 .. coalesce(cardinality(v_runs), 0) by 100 loop
    exit when clock_timestamp() > v_stop;
    v_piece := v_runs[i : i + 99];
    v_seen := v_seen || v_piece;
    for run_id, workflow, problems in
      select p.run_id, p.workflow, p.problems from cyclone_run_problems(v_piece) p where p.stranded order by p.run_id
    loop
      v_found := v_found || run_id;
      return next;
    end loop;
  end loop;

  if v_at is not null then
    update cyclone_marks m set value = case when v_ended then 0 else v_at end where m.name = 'stranded' and m.value <> case when v_ended then 0 else v_at end;
    delete from cyclone_stranded_runs f
     where not f.run_id = any(v_found)
       and (f.run_id = any(v_seen) or not exists (select 1 from cyclone_runs r where r.id = f.run_id and r.state = 'running'));
    insert into cyclone_stranded_runs (run_id, found_at) select f.id, cyclone_now() from unnest(v_found) f(id) on conflict do nothing;
  end if;
end
$$;
