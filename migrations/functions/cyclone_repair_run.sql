-- Mends one running run (R24): recounts every counter from edges and states, puts back what a manual UPDATE left, promotes what should
-- have been promoted, and ends the run when nothing is left to do. Never waits: `busy` when somebody else has the run.
-- The row `repaired` tells in its info what was wrong; without a problem there is no row at all. p_dry_run only tells.
-- Refuses: not_found, not_running (a paused run waits by design).
create or replace function cyclone_repair_run(p_run bigint, p_dry_run boolean, p_actor text, p_reason text) returns table (
  event text, run_id bigint, node text, kind text, queue text, attempt int, generation int,
  node_type text, max_attempts int, timeout_ms bigint, input jsonb, info jsonb
)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_now      timestamptz;
  v_run      cyclone_runs;
  v_problems text[];
  v_stranded boolean;
  v_dead     text[];
  v_changed  int := 0;
  v_rows     int;
begin
  if p_dry_run then
    select * into v_run from cyclone_runs r where r.id = p_run;
  else
    select * into v_run from cyclone_runs r where r.id = p_run for no key update skip locked;
  end if;
  if not found then
    if exists (select 1 from cyclone_runs r where r.id = p_run) then
      return query select 'busy', p_run, null::text, null::text, null::text, null::int, null::int, null::text, null::int, null::bigint, null::jsonb, null::jsonb;
    else
      return query select * from cyclone_refuse('not_found', p_run, null, null);
    end if;
    return;
  elsif v_run.state <> 'running' then
    return query select * from cyclone_refuse('not_running', p_run, null, jsonb_build_object('state', v_run.state));
    return;
  end if;
  select p.problems, p.stranded into v_problems, v_stranded from cyclone_run_problems(array[p_run]) p;
  if not found then
    return;
  end if;
  return query select 'repaired', p_run, null::text, v_run.workflow, null::text, null::int, null::int, null::text, null::int, null::bigint, null::jsonb,
                      jsonb_build_object('problems', v_problems, 'stranded', v_stranded, 'dryRun', p_dry_run);
  if p_dry_run then
    return;
  end if;

  perform 1 from cyclone_steps s where s.run_id = p_run order by s.node for no key update;
  v_now := cyclone_now();                            -- under the locks, as in cyclone_flush

  -- Counters of the nodes. promote_ready_steps recounts those that are pending.
  with edge as materialized (
    select d.node, d.depends_on, u.state as upstream
      from cyclone_deps d left join cyclone_steps u on u.run_id = d.run_id and u.node = d.depends_on
     where d.run_id = p_run
  ), counted as (
    select t.node, coalesce(b.open, 0) as open, coalesce(a.edges, 0) as edges
      from cyclone_steps t
      left join (select e.node, count(*) filter (where e.upstream is distinct from 'completed')::int as open from edge e group by e.node) b on b.node = t.node
      left join (select e.depends_on as node, count(*)::int as edges from edge e group by e.depends_on) a on a.node = t.node
     where t.run_id = p_run and t.node_type <> 'item'
  )
  update cyclone_steps s
     set open_deps = case when s.node_type = 'fan_out' or s.state in ('completed', 'discarded', 'cancelled') then s.open_deps else c.open end,
         dependents = c.edges,
         contained = case when s.state = 'discarded' then coalesce(s.contained, false) end
    from counted c
   where s.run_id = p_run and s.node = c.node
     and ((s.node_type <> 'fan_out' and s.state not in ('completed', 'discarded', 'cancelled') and s.open_deps <> c.open)
       or s.dependents <> c.edges or (s.state = 'discarded' and s.contained is null));

  -- The run is not paused, so neither are its nodes: as cyclone_resume does.
  return query
    update cyclone_steps s
       set state = cyclone_ready_state(s.node_type), available_at = v_now, wake_at = coalesce(s.wake_at, v_now + cyclone_ms(s.wait_left_ms)),
           wait_left_ms = null
     where s.run_id = p_run and s.state = 'paused'
    returning 'resumed', s.run_id, s.node, s.kind, s.queue, s.attempt, s.lease_generation, s.node_type, s.max_attempts, null::bigint, null::jsonb,
              jsonb_build_object('state', s.state);
  get diagnostics v_changed = row_count;

  -- Behind a node that will never complete nothing ever starts: without this the run could not end.
  with recursive never as (
    select d.node
      from cyclone_deps d
      join cyclone_steps s on s.run_id = d.run_id and s.node = d.node and s.state = 'pending'
      left join cyclone_steps u on u.run_id = d.run_id and u.node = d.depends_on
     where d.run_id = p_run and (u.state is null or u.state in ('discarded', 'cancelled'))
    union
    select d.node
      from never n
      join cyclone_deps d on d.run_id = p_run and d.depends_on = n.node
      join cyclone_steps s on s.run_id = d.run_id and s.node = d.node and s.state = 'pending'
  )
  select array_agg(n.node) into v_dead from never n;
  if v_dead is not null then
    return query select * from cyclone_cancel_steps(v_now, p_run, v_dead, 'repair: a node before it will never complete');
    v_changed := v_changed + cardinality(v_dead);
  end if;

  update cyclone_runs r
     set open_steps = c.open_steps, uncontained_discards = c.discards, paused_at = null, failed_at = null, cancelled_at = null, finished_at = null,
         deadline_at = coalesce(r.deadline_at, v_now + cyclone_ms(coalesce(r.deadline_left_ms, r.deadline_ms))), deadline_left_ms = null
    from (select count(*) filter (where s.state not in ('completed', 'discarded', 'cancelled') and s.node_type <> 'item')::int as open_steps,
                 count(*) filter (where s.state = 'discarded' and not s.contained and s.node_type <> 'item')::int as discards
            from cyclone_steps s where s.run_id = p_run) c
   where r.id = p_run;

  return query select * from promote_ready_steps(p_run);
  get diagnostics v_rows = row_count;

  if not run_has_active_steps(p_run) then
    return query
      update cyclone_runs r
         set state = case when r.uncontained_discards > 0 then 'failed' else 'completed' end, finished_at = v_now, deadline_at = null,
             failed_at = case when r.uncontained_discards > 0 then v_now end
       where r.id = p_run and r.state = 'running'
      returning 'run_' || r.state, r.id, null::text, r.workflow, null::text, null::int, null::int, null::text, null::int, null::bigint, null::jsonb,
                null::jsonb;
  end if;

  delete from cyclone_stranded_runs f where f.run_id = p_run;
  if p_actor is not null or p_reason is not null then
    perform cyclone_write_audit(p_actor, 'repair', p_run, null, p_reason, v_changed + v_rows, jsonb_build_object('problems', v_problems));
  end if;
end
$$;
