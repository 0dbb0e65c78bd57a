-- Dead letters by kind, error_kind and fingerprint, the largest group first, each with its newest step as an example. A group is counted
-- up to p_cap steps, newest first (`capped`: it has more; cyclone_v_dlq counts them all), and 1,000 groups are looked at at most.
-- The groups are found by a loose scan of their index, so the cost does not grow with the number of dead letters.
create or replace function cyclone_dlq_groups(p_kind text, p_since_ms bigint, p_cap int) returns table (
  kind text, error_kind text, error_fingerprint text, steps bigint, runs bigint, oldest timestamptz, newest timestamptz,
  example_run_id bigint, example_node text, example_error text, capped boolean
)
language plpgsql stable
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off
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
  ), causes as (
    select k.kind, e.error_kind
      from kinds k cross join unnest('{retryable,permanent,deadline,reclaim_limit,timeout}'::text[]) e(error_kind)
     where p_kind is null or k.kind = p_kind
  ), prints as (
    select c.kind, c.error_kind, f.print
      from causes c
     cross join lateral (
       select s.error_fingerprint as print from cyclone_steps s
        where s.state = 'discarded' and s.kind = c.kind and s.error_kind = c.error_kind
        order by s.error_fingerprint limit 1
     ) f
    union all
    select p.kind, p.error_kind, f.print
      from prints p
     cross join lateral (
       select s.error_fingerprint as print from cyclone_steps s
        where s.state = 'discarded' and s.kind = p.kind and s.error_kind = p.error_kind and s.error_fingerprint > p.print
        order by s.error_fingerprint limit 1
     ) f
  ), counted as (
    select g.kind, g.error_kind, g.print, n.*
      from (select p.* from prints p limit 1000) g
     cross join lateral (
       select count(*) as steps, count(distinct t.run_id) as runs, min(t.finished_at) as oldest, max(t.finished_at) as newest
         from (select s.run_id, s.finished_at from cyclone_steps s
                where s.state = 'discarded' and s.kind = g.kind and s.error_kind = g.error_kind and s.error_fingerprint = g.print
                  and s.finished_at >= v_since
                order by s.finished_at desc limit p_cap + 1) t
     ) n
  )
  select c.kind, c.error_kind, c.print, least(c.steps, p_cap), least(c.runs, p_cap), c.oldest, c.newest, x.run_id, x.node, x.error, c.steps > p_cap
    from counted c
    left join lateral (
      select s.run_id, s.node, s.error from cyclone_steps s
       where s.state = 'discarded' and s.kind = c.kind and s.error_kind = c.error_kind and s.finished_at = c.newest
         and s.error_fingerprint = c.print
       order by s.run_id desc, s.node desc limit 1
    ) x on true
   where c.steps > 0
   order by c.steps desc, c.kind, c.error_kind, c.print;
end
$$;
