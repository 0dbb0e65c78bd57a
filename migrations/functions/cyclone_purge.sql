-- Deletes runs that are over, in one bounded batch (R35): at most p_limit runs, looking at p_scan at most.
-- A run may go when the age p_older_than_ms has passed since it finished; without one, when the longest retention among its steps has
-- (p_default_age_ms for a step that has none; null is for ever). A child stays until its parent has completed or is gone: a retry may need
-- its result. A run that somebody else has locked is left for the next round, and one that a foreign key of the application holds is named
-- in `blocked`. It takes no lock that a claim, a completion or a heartbeat could wait for.
-- p_after: the run after which to start; null for the first. Two purges at once are safe: each passes over what the other has locked.
create or replace function cyclone_purge(
  p_after bigint, p_older_than_ms bigint, p_default_age_ms bigint, p_limit int, p_scan int, p_dry_run boolean, p_actor text, p_reason text
) returns table (runs bigint, steps bigint, walked_to bigint, ended boolean, blocked bigint[])
language plpgsql volatile
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_now    timestamptz := cyclone_now();
  v_left   int := p_scan;
  v_cap    constant int := 50000;                     -- steps in one batch; the first run goes whatever its size
  v_runs   bigint[];
  v_gone   bigint[];
  v_steps  bigint;
  v_last   bigint;
  v_seen   int;
  v_cut    boolean;
  v_cut_at bigint;
  v_run    bigint;
begin
  runs := 0; steps := 0; ended := false; blocked := '{}'; walked_to := coalesce(p_after, 0);

  while not ended and v_left > 0 and runs < p_limit and steps < v_cap loop
    with piece as materialized (
      select r.id, r.state, r.finished_at, r.parent_run_id from cyclone_runs r where r.id > walked_to order by r.id limit least(v_left, p_limit)
    ), old as (
      select p.id, c.steps
        from piece p
       cross join lateral (
         select count(*) as steps, max(s.retention_ms) as longest, coalesce(bool_or(s.retention_ms is null), true) as some_without
           from cyclone_steps s where s.run_id = p.id
       ) c
       where p.state in ('completed', 'failed', 'cancelled')
         and (p.parent_run_id is null
           or not exists (select 1 from cyclone_runs m where m.id = p.parent_run_id and m.state <> 'completed'))
         and p.finished_at + cyclone_ms(case when p_older_than_ms is not null then p_older_than_ms
                                             when not c.some_without then c.longest
                                             when p_default_age_ms is not null then greatest(c.longest, p_default_age_ms) end) <= v_now
    ), placed as (
      select o.id, o.steps, row_number() over w as place, sum(o.steps) over w as so_far from old o window w as (order by o.id)
    ), kept as (
      select l.id, l.steps from placed l
       where l.place <= p_limit - runs and (l.so_far <= v_cap - steps or (l.place = 1 and runs = 0))
    )
    select (select array_agg(k.id order by k.id) from kept k), (select sum(k.steps) from kept k),
           (select count(*) from placed l) > (select count(*) from kept k), count(*), max(p.id)
      into v_runs, v_steps, v_cut, v_seen, v_last
      from piece p;
    ended := v_seen < least(v_left, p_limit) and not v_cut;
    v_left := v_left - v_seen;
    exit when v_runs is null and v_cut;              -- the next one is too large for what is left of this batch

    v_cut_at := v_runs[cardinality(v_runs)];
    v_gone := v_runs;
    if v_runs is not null and not p_dry_run then
      select array_agg(l.id) into v_gone
        from (select r.id from cyclone_runs r where r.id = any(v_runs) and r.state in ('completed', 'failed', 'cancelled')
               order by r.id for update skip locked) l;
      begin
        v_steps := cyclone_delete_runs(v_gone);
      exception when others then
        -- One run that cannot be deleted must not keep the others.
        v_runs := v_gone; v_gone := '{}'; v_steps := 0;
        foreach v_run in array v_runs loop
          begin
            v_steps := v_steps + cyclone_delete_runs(array[v_run]);
            v_gone := v_gone || v_run;
          exception when others then
            blocked := blocked || v_run;
          end;
        end loop;
      end;
    end if;
    runs := runs + coalesce(cardinality(v_gone), 0);
    steps := steps + coalesce(v_steps, 0);

    -- Once more from here when children had to wait for a parent that has just gone.
    if p_dry_run or not exists (
      select 1 from unnest(v_gone) g(id) join cyclone_runs c on c.parent_run_id = g.id
       where c.id <= v_last and c.state in ('completed', 'failed', 'cancelled'))
    then
      walked_to := case when v_cut then v_cut_at else coalesce(v_last, walked_to) end;
    else
      ended := false;
    end if;
  end loop;

  if (p_actor is not null or p_reason is not null) and runs > 0 and not p_dry_run then
    perform cyclone_write_audit(p_actor, 'purge', null, null, p_reason, runs,
      jsonb_strip_nulls(jsonb_build_object('olderThanMs', p_older_than_ms, 'steps', steps, 'walkedTo', walked_to::text)));
  end if;
  return next;
end
$$;
