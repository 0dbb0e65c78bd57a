-- What a completion moves: counts down the open dependencies of the dependents, promotes those that have none left, and ends
-- runs that have no open node left. The caller holds the locks of all these runs. A promoted step that the claim would have
-- taken anyway, in its order (R10), goes on to running in the same statement (pending -> available -> running).
-- p_running: the runs that are not paused; in a paused run nothing leaves pending (R26).
create or replace function cyclone_advance(
  p_now timestamptz, p_done_runs bigint[], p_parent_runs bigint[], p_parent_nodes text[], p_running bigint[],
  p_owner text, p_lease_ms bigint, p_queues text[], p_slots int[], p_kinds text[], p_max_bytes bigint,
  p_other_runs bigint[], p_other_nodes text[], p_other_queues text[], p_other_priorities int[], p_other_scheduled timestamptz[]
) returns table (
  event text, run_id bigint, node text, kind text, queue text, attempt int, generation int,
  node_type text, max_attempts int, timeout_ms bigint, input jsonb, info jsonb
)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_row       record;
  v_too_large record;
  v_large     bigint[] := '{}';
  v_large_at  text[] := '{}';
begin
  if p_parent_runs is not null then
    for v_row in
      with freed as (
        select d.run_id, d.node, count(*)::int as n
          from unnest(p_parent_runs, p_parent_nodes) t(run_id, node)
          join cyclone_deps d on d.run_id = t.run_id and d.depends_on = t.node
         group by d.run_id, d.node
      ), touched as materialized (
        select s.run_id, s.node, s.queue, s.kind, s.priority, s.scheduled_at, s.node_type, f.n,
               s.open_deps = f.n and s.run_id = any(coalesce(p_running, '{}')) as ready,
               case when s.open_deps <> f.n or s.input_spec is null then s.input else cyclone_resolve_input(s.run_id, s.input_spec) end as input,
               s.input_spec is not null as computed
          from freed f
         cross join lateral (select t.* from cyclone_steps t where t.run_id = f.run_id and t.node = f.node offset 0) s -- by key (C1)
         where s.state = 'pending'
      ), contest as (
        select t.run_id, t.node, t.queue, t.priority, t.scheduled_at, t.n, t.ready, t.input, true as promoted,
               t.ready and t.computed and t.input is null as too_large,
               t.ready and not (t.computed and t.input is null) and t.node_type in ('step', 'action') and t.scheduled_at <= p_now
                 and t.kind = any(p_kinds) and t.queue = any(p_queues) as eligible
          from touched t
        union all
        select o.run_id, o.node, o.queue, o.priority, o.scheduled_at, 0, true, null, false, false, true
          from unnest(p_other_runs, p_other_nodes, p_other_queues, p_other_priorities, p_other_scheduled) o(run_id, node, queue, priority, scheduled_at)
      ), placed as (
        select c.*, row_number() over (partition by c.eligible, c.queue order by c.priority, c.scheduled_at, c.run_id, c.node) as place,
               sum(case when c.eligible then pg_column_size(c.input) else 0 end)
                 over (order by c.priority, c.scheduled_at, c.run_id, c.node) as bytes_so_far
          from contest c
      ), decided as (
        select p.*, p.eligible and p.place <= p_slots[array_position(p_queues, p.queue)] and p.bytes_so_far <= p_max_bytes as claimed
          from placed p where p.promoted
      )
      update cyclone_steps s
         set open_deps = s.open_deps - d.n,
             input = d.input,
             state = case when not d.ready or d.too_large then s.state
                          when d.claimed then 'running'
                          else cyclone_ready_state(s.node_type) end,
             available_at = case when d.ready then p_now else s.available_at end,
             lease_owner = case when d.claimed then p_owner end,
             lease_expiry = case when d.claimed then p_now + cyclone_ms(least(p_lease_ms, s.timeout_ms)) end,
             lease_generation = case when d.claimed then s.lease_generation + 1 else s.lease_generation end,
             started_at = case when d.claimed then p_now else s.started_at end,
             wake_at = case when d.ready and s.wait_ms is not null then p_now + cyclone_ms(s.wait_ms) else s.wake_at end
        from decided d
       where s.run_id = d.run_id and s.node = d.node
      returning s.run_id, s.node, s.kind, s.queue, s.attempt, s.lease_generation, s.node_type, s.max_attempts, s.timeout_ms, s.state, s.backoff,
                case when d.claimed then s.input end as input, d.ready, d.too_large
    loop
      if v_row.too_large then
        v_large := v_large || v_row.run_id;
        v_large_at := v_large_at || v_row.node;
      elsif v_row.ready and v_row.state <> 'pending' then
        event := case v_row.state when 'running' then 'claimed' when 'available' then 'promoted' else 'waiting' end;
        run_id := v_row.run_id; node := v_row.node; kind := v_row.kind; queue := v_row.queue; attempt := v_row.attempt;
        generation := v_row.lease_generation; node_type := v_row.node_type; max_attempts := v_row.max_attempts;
        timeout_ms := v_row.timeout_ms; input := v_row.input;
        info := case when event <> 'claimed' then null when v_row.backoff is null then '{"promoted": true}'::jsonb
                     else '{"promoted": true, "backoff": true}'::jsonb end;
        return next;
      end if;
    end loop;
  end if;

  -- END: a run whose last open node this was. An uncontained discard that a retry left behind fails it again (R25).
  return query
    with moved as (
      update cyclone_runs r
         set open_steps = r.open_steps - d.n,
             state = case when r.open_steps > d.n then r.state when r.uncontained_discards > 0 then 'failed' else 'completed' end,
             finished_at = case when r.open_steps = d.n then p_now end,
             failed_at = case when r.open_steps = d.n and r.uncontained_discards > 0 then p_now end,
             paused_at = case when r.open_steps > d.n then r.paused_at end,
             deadline_at = case when r.open_steps > d.n then r.deadline_at end
        from (select t.run_id, count(*)::int as n from unnest(p_done_runs) t(run_id) group by t.run_id) d
       where r.id = d.run_id
      returning r.id, r.workflow, r.state, r.open_steps
    )
    select 'run_' || m.state, m.id, null::text, m.workflow, null::text, null::int, null::int,
           null::text, null::int, null::bigint, null::jsonb, null::jsonb
      from moved m where m.open_steps = 0;

  if cardinality(v_large) > 0 then
    for v_too_large in select l.run_id, l.node from unnest(v_large, v_large_at) l(run_id, node) loop
      return query select * from cyclone_discard_step(p_now, v_too_large.run_id, v_too_large.node, 'the resolved input is larger than 64 MiB', 'permanent', null, null);
    end loop;
  end if;
end
$$;
