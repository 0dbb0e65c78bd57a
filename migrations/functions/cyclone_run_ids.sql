-- A page of runs by id (keyset, never an offset): the runs after p_after in the direction asked for that match p_filter
--   {states, workflows: [...], tags: {key: value}, onceKey, parent, createdFrom, createdTo}   every key optional, createdTo exclusive
-- No index on runs has their state or workflow, so where no other index gives few enough candidates it walks the ids, and looks at p_scan
-- runs at most. The last row has no id and says how far it came (`walked_to`) and whether that was the end: a page may be short although
-- more follow, and goes on from there.
create or replace function cyclone_run_ids(p_filter jsonb, p_after bigint, p_descending boolean, p_limit int, p_scan int) returns table (
  id bigint, walked_to bigint, ended boolean
)
language plpgsql stable
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  c_few       constant int := 10000;
  v_states    text[] := case when p_filter ? 'states' then array(select jsonb_array_elements_text(p_filter -> 'states')) end;
  v_workflows text[] := case when p_filter ? 'workflows' then array(select jsonb_array_elements_text(p_filter -> 'workflows')) end;
  v_tags      jsonb := p_filter -> 'tags';
  v_key       text := p_filter ->> 'onceKey';
  v_parent    bigint := (p_filter ->> 'parent')::bigint;
  v_from      timestamptz := (p_filter ->> 'createdFrom')::timestamptz;
  v_to        timestamptz := (p_filter ->> 'createdTo')::timestamptz;
  v_lowest    bigint := 0;
  v_highest   bigint := 9223372036854775807;
  v_few       bigint[];                              -- the only candidates; null: not known
  v_indexed   boolean := false;                      -- the indexes on states give the candidates
  v_open      bigint[] := '{}';                      -- runs with open steps
  v_at        bigint;
  v_piece     int := greatest(2 * p_limit, 100);
  v_left      int := p_scan;
  v_found     bigint[] := '{}';
  v_hits      bigint[];
  v_seen      int;
  v_last      bigint;
begin
  -- The most selective source that an index offers.
  if v_parent is not null then
    v_few := array(select r.id from cyclone_runs r where r.parent_run_id = v_parent);
  elsif v_key is not null then
    v_few := array(
      with recursive flow as (
        (select r.workflow from cyclone_runs r where r.once_key is not null order by r.workflow limit 1)
        union all
        select (select r.workflow from cyclone_runs r where r.once_key is not null and r.workflow > f.workflow order by r.workflow limit 1)
          from flow f where f.workflow is not null
      )
      select r.id from flow f join cyclone_runs r on r.workflow = f.workflow and r.once_key = v_key
    );
  elsif v_tags is not null then
    v_few := array(select r.id from cyclone_runs r where r.tags @> v_tags limit c_few + 1);
  end if;
  if cardinality(v_few) > c_few then
    v_few := null;
  end if;
  if v_few is null and v_states <@ '{running,paused,failed,cancelled}' then
    -- The indexes on failed and cancelled runs are read as a whole for each page: quick until they are very large.
    v_indexed := coalesce((select sum(c.reltuples) from pg_class c
                            where c.oid in (to_regclass('cyclone_runs_failed'), to_regclass('cyclone_runs_cancelled'))) < 100000, false);
    if v_indexed and 'running' = any(v_states) then
      v_open := array(
        (select s.run_id from cyclone_steps s where s.state = 'available' limit c_few + 1)
        union all
        (select s.run_id from cyclone_steps s where s.state = 'running' limit c_few + 1)
        union all
        (select s.run_id from cyclone_steps s
          where s.state in ('pending', 'waiting_timer', 'waiting_signal', 'waiting_child', 'paused') limit c_few + 1)
        union all
        (select f.run_id from cyclone_stranded_runs f limit c_few + 1)
      );
      v_indexed := cardinality(v_open) <= c_few;
    end if;
  end if;
  -- An hour of slack, see cyclone_run_id_at; in a small table nothing is gained.
  if (v_from is not null or v_to is not null) and v_few is null and not v_indexed and (select max(r.id) - min(r.id) from cyclone_runs r) > 100000 then
    v_lowest := coalesce(cyclone_run_id_at(v_from - interval '1 hour'), v_lowest);
    v_highest := coalesce(cyclone_run_id_at(v_to + interval '1 hour'), v_highest);
  end if;

  v_at := case when p_descending then least(coalesce(p_after, v_highest), v_highest) else greatest(coalesce(p_after, v_lowest - 1), v_lowest - 1) end;
  ended := false;
  while not ended and v_left > 0 and cardinality(v_found) < p_limit loop
    v_piece := least(v_piece, v_left);
    with piece as materialized (
      (select r.id from cyclone_runs r
        where v_few is null and not v_indexed and p_descending and r.id < v_at and r.id >= v_lowest order by r.id desc limit v_piece)
      union all
      (select r.id from cyclone_runs r
        where v_few is null and not v_indexed and not p_descending and r.id > v_at and r.id < v_highest order by r.id limit v_piece)
      union all
      (select f.id
         from (
           select u.id from unnest(v_few) u(id)
           union
           select u.id from unnest(v_open) u(id) where v_indexed
           union all
           select r.id from cyclone_runs r where v_indexed and r.failed_at is not null and 'failed' = any(v_states)
           union all
           select r.id from cyclone_runs r where v_indexed and r.cancelled_at is not null and 'cancelled' = any(v_states)
           union all
           select r.id from cyclone_runs r where v_indexed and r.paused_at is not null and 'paused' = any(v_states) and not 'running' = any(v_states)
         ) f
        where case when p_descending then f.id < v_at else f.id > v_at end
        order by case when p_descending then -f.id else f.id end
        limit v_piece)
    )
    select array_agg(r.id order by case when p_descending then -r.id else r.id end), count(*), case when p_descending then min(p.id) else max(p.id) end
      into v_hits, v_seen, v_last
      from piece p
      left join lateral (
        select t.id from cyclone_runs t
         where t.id = p.id
           and (v_states is null or t.state = any(v_states))
           and (v_workflows is null or t.workflow = any(v_workflows))
           and (v_tags is null or t.tags @> v_tags)
           and (v_key is null or t.once_key = v_key)
           and (v_parent is null or t.parent_run_id = v_parent)
           and (v_from is null or t.created_at >= v_from)
           and (v_to is null or t.created_at < v_to)
         offset 0
      ) r on true;
    ended := v_seen < v_piece;
    v_at := coalesce(v_last, v_at);
    v_left := v_left - v_seen;
    v_found := v_found || array_remove(v_hits, null);
    v_piece := v_piece * 4;
  end loop;

  if cardinality(v_found) > p_limit then
    ended := false;
    v_at := v_found[p_limit];
  end if;
  foreach id in array v_found[1:p_limit] loop
    return next;
  end loop;
  id := null; walked_to := v_at;
  return next;
end
$$;
