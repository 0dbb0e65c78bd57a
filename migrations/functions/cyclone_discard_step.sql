-- Discards one open node and applies its failure policy (R23). The caller holds the run's lock.
-- Contained, when there is a downstream node and every one declared cancel_branch: only those are cancelled and the run goes on.
-- Else the run fails at once and everything open in it is cancelled. A leaf is never contained.
-- p_fingerprint: null for an error that the engine itself gives.
create or replace function cyclone_discard_step(
  p_now timestamptz, p_run bigint, p_node text, p_error text, p_error_kind text, p_stack text, p_fingerprint text
) returns table (
  event text, run_id bigint, node text, kind text, queue text, attempt int, generation int,
  node_type text, max_attempts int, timeout_ms bigint, input jsonb, info jsonb
)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_downstream text[];
  v_contained  boolean;
  v_cancelled  int := 0;
  v_row        record;
begin
  -- A discard before this one, in the same call, may have cancelled the node.
  if exists (select 1 from cyclone_steps s where s.run_id = p_run and s.node = p_node and s.state in ('completed', 'discarded', 'cancelled')) then
    return;
  end if;

  select array_agg(d.node) into v_downstream from cyclone_downstream(p_run, array[p_node]) d;
  v_contained := v_downstream is not null and not exists (
    select 1 from unnest(v_downstream) d(node) join cyclone_steps s on s.run_id = p_run and s.node = d.node
     where s.on_dep_failure <> 'cancel_branch');

  return query
    update cyclone_steps s
       set state = 'discarded', error = p_error, error_kind = p_error_kind, panic_stack = p_stack,
           error_fingerprint = coalesce(p_fingerprint, cyclone_fingerprint(s.kind, p_error_kind, p_error)), contained = v_contained, finished_at = p_now, lease_owner = null, lease_expiry = null
     where s.run_id = p_run and s.node = p_node
    returning 'discarded', s.run_id, s.node, s.kind, s.queue, s.attempt, s.lease_generation, s.node_type, s.max_attempts, null::bigint, null::jsonb,
              jsonb_build_object('error', p_error, 'errorKind', p_error_kind, 'contained', v_contained);

  for v_row in select * from cyclone_cancel_steps(p_now, p_run, case when v_contained then v_downstream end, format('node %s was discarded', p_node)) loop
    v_cancelled := v_cancelled + 1;
    event := v_row.event; run_id := v_row.run_id; node := v_row.node; kind := v_row.kind; queue := v_row.queue; attempt := v_row.attempt;
    generation := v_row.generation; node_type := v_row.node_type; max_attempts := null; timeout_ms := null; input := null; info := v_row.info;
    return next;
  end loop;

  return query
    with moved as (
      update cyclone_runs r
         set uncontained_discards = n.discards, open_steps = n.open_steps,
             state = case when not v_contained then 'failed' when n.open_steps > 0 then r.state when n.discards > 0 then 'failed' else 'completed' end,
             finished_at = case when not v_contained or n.open_steps = 0 then p_now end,
             failed_at = case when not v_contained or (n.open_steps = 0 and n.discards > 0) then p_now end,
             paused_at = case when v_contained and n.open_steps > 0 then r.paused_at end,
             deadline_at = case when v_contained and n.open_steps > 0 then r.deadline_at end
        from (select o.id, o.uncontained_discards + case when v_contained then 0 else 1 end as discards,
                     case when v_contained then o.open_steps - 1 - v_cancelled else 0 end as open_steps
                from cyclone_runs o where o.id = p_run) n
       where r.id = n.id
      returning r.id, r.workflow, r.state
    )
    select 'run_' || m.state, m.id, null::text, m.workflow, null::text, null::int, null::int, null::text, null::int, null::bigint, null::jsonb, null::jsonb
      from moved m where m.state in ('completed', 'failed');
end
$$;
