-- Reopens a failed run (R25): one discarded node, or all when p_node is null, and every cancelled node that has no discarded node
-- left upstream. Discarded nodes upstream of the one (a deadline leaves such) are reopened with it: else it could never become ready. Outputs of completed nodes stay. Each reopened discard is charged one attempt and gets p_additional more (R11).
-- The run has its whole deadline again (R27). Refuses: not_found, node_not_found, not_retryable, child_not_retryable.
create or replace function cyclone_retry(p_run bigint, p_node text, p_additional int, p_reason text) returns table (
  event text, run_id bigint, node text, kind text, queue text, attempt int, generation int,
  node_type text, max_attempts int, timeout_ms bigint, input jsonb, info jsonb
)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_now     timestamptz;
  v_run     cyclone_runs;
  v_step    cyclone_steps;
  v_targets text[];
  v_blocked text[];
  v_root    bigint;
begin
  select * into v_run from cyclone_runs r where r.id = p_run for no key update;
  if not found then
    return query select * from cyclone_refuse('not_found', p_run, null, null);
    return;
  elsif v_run.parent_run_id is not null then
    with recursive up as (
      select r.id, r.parent_run_id from cyclone_runs r where r.id = p_run
      union all
      select r.id, r.parent_run_id from up u join cyclone_runs r on r.id = u.parent_run_id
    )
    select min(u.id) into v_root from up u;
    return query select * from cyclone_refuse('child_not_retryable', p_run, p_node, jsonb_build_object('rootRunId', v_root::text));
    return;
  end if;
  if p_node is not null then
    select * into v_step from cyclone_steps s where s.run_id = p_run and s.node = p_node;
    if not found then
      return query select * from cyclone_refuse('node_not_found', p_run, p_node, null);
      return;
    end if;
  end if;
  if v_run.state <> 'failed' or (p_node is not null and (v_step.state <> 'discarded' or v_step.contained)) then
    return query select * from cyclone_refuse('not_retryable', p_run, p_node,
      jsonb_build_object('state', v_run.state, 'nodeState', v_step.state, 'contained', v_step.contained));
    return;
  end if;

  v_now := cyclone_now();                            -- under the lock, as in cyclone_flush

  select array_agg(s.node) into v_targets from cyclone_steps s
   where s.run_id = p_run and s.state = 'discarded'
     and (p_node is null or s.node = p_node or s.node in (
       with recursive upstream as (
         select p_node collate "C" as node
         union
         select s.node
           from upstream t
           join cyclone_deps d on d.run_id = p_run and d.node = t.node
           join cyclone_steps s on s.run_id = p_run and s.node = d.depends_on and s.state <> 'completed'
       )
       select t.node from upstream t));
  select array_agg(d.node) into v_blocked
    from cyclone_downstream(p_run, array(select s.node from cyclone_steps s
                                          where s.run_id = p_run and s.state = 'discarded' and not s.node = any(v_targets))) d;

  return query
    with reopened as materialized (
      select s.node, s.state as was, count(d.depends_on) filter (where u.state <> 'completed')::int as open_deps
        from cyclone_steps s
        left join cyclone_deps d on d.run_id = s.run_id and d.node = s.node
        left join cyclone_steps u on u.run_id = d.run_id and u.node = d.depends_on
       where s.run_id = p_run
         and (s.node = any(v_targets) or (s.state = 'cancelled' and not s.node = any(coalesce(v_blocked, '{}'))))
       group by s.node, s.state
       order by s.node
    )
    update cyclone_steps s
       set state = case when o.open_deps = 0 and s.node_type <> 'child' and (s.input_spec is null or s.input is not null)
                        then cyclone_ready_state(s.node_type) else 'pending' end,
           open_deps = o.open_deps,
           attempt = s.attempt + case when o.was = 'discarded' then 1 else 0 end,
           max_attempts = case when o.was = 'discarded' then greatest(least(s.max_attempts::bigint + coalesce(p_additional, 0), 2147483647)::int, s.attempt + 1) else s.max_attempts end,
           reclaims = 0, error = null, error_kind = null, error_fingerprint = null, panic_stack = null, contained = null, finished_at = null,
           available_at = case when o.open_deps = 0 then v_now end,
           scheduled_at = case when o.was = 'discarded' then least(s.scheduled_at, v_now) else s.scheduled_at end,
           wait_left_ms = null,
           -- A wait that has not begun yet gets its time when it does.
           wake_at = case when s.node_type = 'timer' and (o.open_deps = 0 or s.wait_ms is null)
                            then coalesce(s.wake_at, v_now + cyclone_ms(coalesce(s.wait_left_ms, s.wait_ms)))
                          when o.open_deps = 0 then v_now + cyclone_ms(s.wait_ms) end
      from reopened o
     where s.run_id = p_run and s.node = o.node
    returning 'reopened', s.run_id, s.node, s.kind, s.queue, s.attempt, s.lease_generation, s.node_type, s.max_attempts, null::bigint, null::jsonb,
              jsonb_build_object('state', s.state, 'was', o.was, 'reason', p_reason);

  update cyclone_runs r
     set state = 'running', failed_at = null, finished_at = null, deadline_at = v_now + cyclone_ms(r.deadline_ms), deadline_left_ms = null,
         open_steps = n.open_steps, uncontained_discards = n.discards
    from (select count(*) filter (where s.state not in ('completed', 'discarded', 'cancelled') and s.node_type <> 'item')::int as open_steps,
                 count(*) filter (where s.state = 'discarded' and not s.contained)::int as discards
            from cyclone_steps s where s.run_id = p_run) n
   where r.id = p_run;
  return query select 'run_retried', p_run, null::text, v_run.workflow, null::text, null::int, null::int,
                      null::text, null::int, null::bigint, null::jsonb, jsonb_build_object('reason', p_reason);
  -- A child node starts anew from pending; a node that was never promoted still has to resolve its input.
  return query select * from promote_ready_steps(p_run);
end
$$;
