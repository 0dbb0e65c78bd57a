-- Dead letters by kind, error_kind and fingerprint, the largest group first, each with its newest step as an example.
-- It looks at the newest p_cap discarded steps of each kind at most: `capped` says that a kind has older ones that are not counted.
create or replace function cyclone_dlq_groups(p_kind text, p_since_ms bigint, p_cap int) returns table (
  kind text, error_kind text, error_fingerprint text, steps bigint, runs bigint, oldest timestamptz, newest timestamptz,
  example_run_id bigint, example_node text, example_error text, capped boolean
)
language plpgsql stable
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_since timestamptz := coalesce(cyclone_now() - cyclone_ms(p_since_ms), '-infinity');
begin
  return query
  with recursive kinds as (
    (select s.kind from cyclone_steps s where s.state = 'discarded' and s.kind >= coalesce(p_kind, '') order by s.kind limit 1)
    union all
    select (select s.kind from cyclone_steps s where s.state = 'discarded' and s.kind > k.kind order by s.kind limit 1)
      from kinds k
     where p_kind is null and k.kind is not null
  ), dead as (
    select s.*, row_number() over (partition by s.kind order by s.finished_at desc) as place
      from kinds k
     cross join lateral (
       select t.run_id, t.node, t.kind, t.error_kind, t.error_fingerprint, t.finished_at from cyclone_steps t
        where t.state = 'discarded' and t.kind = k.kind and t.finished_at >= v_since
        order by t.finished_at desc
        limit p_cap + 1
     ) s
     where p_kind is null or k.kind = p_kind
  ), grouped as (
    select d.kind, d.error_kind, d.error_fingerprint, count(*) as steps, count(distinct d.run_id) as runs,
           min(d.finished_at) as oldest, max(d.finished_at) as newest,
           (array_agg(d.run_id order by d.finished_at desc, d.run_id desc, d.node desc))[1] as example_run,
           (array_agg(d.node order by d.finished_at desc, d.run_id desc, d.node desc))[1] as example_node
      from dead d where d.place <= p_cap
     group by d.kind, d.error_kind, d.error_fingerprint
  )
  select g.kind, g.error_kind, g.error_fingerprint, g.steps, g.runs, g.oldest, g.newest, g.example_run, g.example_node, s.error,
         exists (select 1 from dead d where d.kind = g.kind and d.place > p_cap)
    from grouped g
    left join cyclone_steps s on s.run_id = g.example_run and s.node = g.example_node
   order by g.steps desc, g.kind, g.error_kind, g.error_fingerprint;
end
$$;
