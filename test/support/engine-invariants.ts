/**
 * One row for each thing that is wrong in the tables of the engine. It recounts everything from the edges and the states:
 * whatever happened, in whatever order, this has to be empty between any two transactions.
 */
export const PROBLEMS_SQL = `
with upstream as (
  select d.run_id, d.node, count(*) filter (where u.state <> 'completed') as open
    from cyclone_deps d join cyclone_steps u on u.run_id = d.run_id and u.node = d.depends_on
   group by d.run_id, d.node
), downstream as (
  select d.run_id, d.depends_on as node, count(*) as edges from cyclone_deps d group by d.run_id, d.depends_on
), step as (
  select s.*, r.state as run_state, coalesce(u.open, 0) as really_open, coalesce(o.edges, 0) as edges
    from cyclone_steps s
    join cyclone_runs r on r.id = s.run_id
    left join upstream u on u.run_id = s.run_id and u.node = s.node
    left join downstream o on o.run_id = s.run_id and o.node = s.node
), run as (
  select r.*, c.*
    from cyclone_runs r
    cross join lateral (
      select count(*) filter (where s.state not in ('completed', 'discarded', 'cancelled') and s.node_type <> 'item') as really_open,
             count(*) filter (where s.state = 'discarded' and s.contained is not true and s.node_type <> 'item') as really_uncontained,
             count(*) filter (where s.state in ('available', 'running', 'waiting_timer', 'waiting_signal', 'waiting_child')) as moving
        from cyclone_steps s where s.run_id = r.id
    ) c
), problem as (
  select format('run %s: open_steps is %s, really %s', id, open_steps, really_open) as problem from run where open_steps <> really_open
  union all
  select format('run %s: uncontained_discards is %s, really %s', id, uncontained_discards, really_uncontained) from run
   where uncontained_discards <> really_uncontained
  union all
  select format('run %s: is %s with %s open nodes', id, state, really_open) from run
   where (state in ('running', 'paused')) <> (really_open > 0)
  union all
  select format('run %s: is %s with %s uncontained discards', id, state, really_uncontained) from run
   where (state = 'completed' and really_uncontained > 0) or (state = 'failed' and really_uncontained = 0)
  union all
  select format('run %s: is stranded', id) from run where state = 'running' and moving = 0
  union all
  select format('run %s: is %s, but its marks say otherwise', id, state) from run
   where (failed_at is not null) <> (state = 'failed') or (cancelled_at is not null) <> (state = 'cancelled')
      or (paused_at is not null) <> (state = 'paused') or (deadline_at is not null and (state <> 'running' or deadline_ms is null))
      or (state = 'running' and deadline_ms is not null and deadline_at is null)
  union all
  select format('step %s/%s: is pending with open_deps %s, really %s', run_id, node, open_deps, really_open) from step
   where state = 'pending' and node_type not in ('item', 'fan_out') and open_deps <> really_open
  union all
  select format('step %s/%s: is pending in a running run although nothing is open before it', run_id, node) from step
   where state = 'pending' and node_type not in ('item', 'fan_out') and run_state = 'running' and really_open = 0
  union all
  select format('step %s/%s: is %s although %s dependencies are open', run_id, node, state, really_open) from step
   where state not in ('pending', 'discarded', 'cancelled') and node_type <> 'item' and really_open > 0
  union all
  select format('step %s/%s: is %s in a run that is %s', run_id, node, state, run_state) from step
   where (state in ('available', 'waiting_timer', 'waiting_signal', 'waiting_child') and run_state <> 'running')
      or (state = 'paused' and run_state <> 'paused')
  union all
  select format('step %s/%s: has %s dependents, really %s', run_id, node, dependents, edges) from step
   where dependents <> edges
  union all
  select format('step %s/%s: is %s with finished_at %s', run_id, node, state, finished_at) from step
   where (finished_at is not null) <> (state in ('completed', 'discarded', 'cancelled'))
  union all
  select format('step %s/%s: is %s with a lease until %s', run_id, node, state, lease_expiry) from step
   where (lease_expiry is not null) <> (state = 'running')
  union all
  select format('step %s/%s: is %s with contained %s', run_id, node, state, contained) from step
   where (contained is not null) <> (state = 'discarded')
  union all
  select format('step %s/%s: is %s with the unresolved input %s', run_id, node, state, input_spec) from step
   where state in ('available', 'running', 'completed') and input_spec is not null and input is null
  union all
  select format('step %s/%s: ended at %s, before it began at %s', run_id, node, finished_at, started_at) from step
   where finished_at < started_at
  union all
  select format('step %s/%s: began at %s, before %s ended at %s', s.run_id, s.node, s.started_at, u.node, u.finished_at)
    from cyclone_deps d
    join cyclone_steps s on s.run_id = d.run_id and s.node = d.node
    join cyclone_steps u on u.run_id = d.run_id and u.node = d.depends_on and u.state = 'completed'
   where s.started_at < u.finished_at
)
select problem from problem`;
