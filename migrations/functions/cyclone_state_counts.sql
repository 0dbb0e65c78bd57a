-- Runs by state, and steps by terminal state (R34). Open runs are counted exactly, through their open steps; what is over is counted up to
-- p_cap, newest first, and `capped` says that there are more, or more than it looked at.
create or replace function cyclone_state_counts(p_cap int) returns table (entity text, state text, n bigint, capped boolean)
language plpgsql stable
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_paused bigint := (select count(*) from cyclone_runs r where r.paused_at is not null);
  v_window int := 10 * p_cap;                        -- rows that a state without an index of its own is looked for in
  v_few    int := greatest(p_cap / 20, 100);         -- runs in which cancelled steps are looked for
begin
  return query
  select 'run', c.state, least(c.n, p_cap), c.n > p_cap
    from (
      select 'failed' as state, (select count(*) from (select 1 from cyclone_runs r where r.failed_at is not null limit p_cap + 1) t) as n
      union all
      select 'cancelled', (select count(*) from (select 1 from cyclone_runs r where r.cancelled_at is not null limit p_cap + 1) t)
    ) c
  union all
  select 'step', 'discarded', least(d.n, p_cap), d.n > p_cap
    from (select count(*) as n from (select 1 from cyclone_steps s where s.state = 'discarded' limit p_cap + 1) t) d;

  return query select 'run', 'paused', v_paused, false;
  return query
  select 'run', 'running', count(*) - v_paused, false
    from (
      select s.run_id from cyclone_steps s where s.state = 'available'
      union
      select s.run_id from cyclone_steps s where s.state = 'running'
      union
      select s.run_id from cyclone_steps s where s.state in ('pending', 'waiting_timer', 'waiting_signal', 'waiting_child', 'paused')
    ) open_runs;

  return query
  select 'run', 'completed', least(c.n, p_cap),
         c.n > p_cap or exists (select 1 from cyclone_runs r order by r.id desc offset v_window)
    from (select count(*) as n
            from (select 1 from (select r.state from cyclone_runs r order by r.id desc limit v_window) w where w.state = 'completed' limit p_cap + 1) t) c;
  return query
  select 'step', 'completed', least(c.n, p_cap),
         c.n > p_cap or exists (select 1 from cyclone_steps s order by s.run_id desc, s.node desc offset v_window)
    from (select count(*) as n
            from (select 1 from (select s.state from cyclone_steps s order by s.run_id desc, s.node desc limit v_window) w
                   where w.state = 'completed' limit p_cap + 1) t) c;

  -- A step is cancelled with its run, or because one of its run was discarded.
  return query
  with suspects as materialized (
    (select r.id from cyclone_runs r where r.cancelled_at is not null limit v_few)
    union all
    (select s.run_id from cyclone_steps s where s.state = 'discarded' limit v_few)
  )
  select 'step', 'cancelled', least(c.n, p_cap), c.n > p_cap or (select count(*) from suspects) >= v_few
    from (select count(*) as n
            from (select 1 from (select distinct u.id from suspects u) u
                   cross join lateral (select 1 from cyclone_steps s where s.run_id = u.id and s.state = 'cancelled' offset 0) x
                   limit p_cap + 1) t) c;
end
$$;
