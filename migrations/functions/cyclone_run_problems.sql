-- What is wrong in running runs, recounted from edges and states (R24): it trusts no counter. `stranded` says that a run cannot go on by
-- itself: nothing in it is active, or a node was never promoted. Runs without a problem, and runs that are not running, are left out: a
-- paused run waits by design. One statement, and so one snapshot: between two transactions of the engine it finds nothing.
create or replace function cyclone_run_problems(p_runs bigint[]) returns table (run_id bigint, workflow text, stranded boolean, problems text[])
language plpgsql stable
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
  return query
  with picked as materialized (
    select r.* from cyclone_runs r where r.id = any(p_runs) and r.state = 'running'
  ), step as materialized (
    select s.* from picked p
     cross join lateral (
       select t.run_id, t.node, t.node_type, t.state, t.open_deps, t.dependents, t.contained from cyclone_steps t where t.run_id = p.id offset 0
     ) s
  ), edge as materialized (
    select d.run_id, d.node, d.depends_on, u.state as upstream
      from picked p
     cross join lateral (select t.run_id, t.node, t.depends_on from cyclone_deps t where t.run_id = p.id offset 0) d
      left join step u on u.run_id = d.run_id and u.node = d.depends_on
  ), before as (
    select e.run_id, e.node, count(*) filter (where e.upstream is distinct from 'completed') as open,
           bool_or(e.upstream is null or e.upstream in ('discarded', 'cancelled')) as dead
      from edge e group by e.run_id, e.node
  ), behind as (
    select e.run_id, e.depends_on as node, count(*) as edges from edge e group by e.run_id, e.depends_on
  ), node as (
    select s.*, coalesce(b.open, 0) as really_open, coalesce(b.dead, false) as dead, coalesce(a.edges, 0) as edges,
           s.state not in ('completed', 'discarded', 'cancelled') as is_open, s.node_type not in ('item', 'fan_out') as is_plain
      from step s
      left join before b on b.run_id = s.run_id and b.node = s.node
      left join behind a on a.run_id = s.run_id and a.node = s.node
  ), counted as (
    select n.run_id,
           count(*) filter (where n.state in ('available', 'running', 'waiting_timer', 'waiting_signal', 'waiting_child')) as active,
           count(*) filter (where n.is_open and n.node_type <> 'item') as open_steps,
           count(*) filter (where n.state = 'discarded' and n.contained is not true and n.node_type <> 'item') as discards,
           (array_agg(n.node order by n.node) filter (where n.state = 'pending' and n.is_plain and n.really_open = 0))[1:5] as missed,
           (array_agg(n.node order by n.node) filter (where n.state = 'pending' and n.is_plain and n.dead))[1:5] as doomed,
           (array_agg(n.node order by n.node) filter (where n.state = 'paused'))[1:5] as paused,
           (array_agg(n.node order by n.node) filter (where n.is_open and n.is_plain and n.open_deps <> n.really_open))[1:5] as miscounted,
           (array_agg(n.node order by n.node) filter (where n.dependents <> n.edges))[1:5] as misjudged
      from node n group by n.run_id
  ), found as (
    select p.id, p.workflow, coalesce(c.active, 0) = 0 or c.missed is not null as stranded,
           array_remove(array[
             case when coalesce(c.active, 0) = 0 then 'nothing in it is available, running or waiting' end,
             'pending although everything before it has completed: ' || array_to_string(c.missed, ', '),
             'pending behind a node that will never complete: ' || array_to_string(c.doomed, ', '),
             'paused in a run that is not: ' || array_to_string(c.paused, ', '),
             'wrong number of open dependencies: ' || array_to_string(c.miscounted, ', '),
             'wrong number of dependents: ' || array_to_string(c.misjudged, ', '),
             case when p.open_steps <> coalesce(c.open_steps, 0) then format('open_steps is %s, really %s', p.open_steps, coalesce(c.open_steps, 0)) end,
             case when p.uncontained_discards <> coalesce(c.discards, 0)
                  then format('uncontained_discards is %s, really %s', p.uncontained_discards, coalesce(c.discards, 0)) end,
             case when p.paused_at is not null or p.failed_at is not null or p.cancelled_at is not null then 'it bears the mark of another state' end,
             case when p.deadline_ms is not null and p.deadline_at is null then 'its deadline is not set' end
           ], null) as problems
      from picked p left join counted c on c.run_id = p.id
  )
  select f.id, f.workflow, f.stranded, f.problems from found f where cardinality(f.problems) > 0 order by f.id;
end
$$;
