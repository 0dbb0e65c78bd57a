-- Settles executions that did not complete, each in its own right (R12, R15, R17, R20, R39). p_outcomes says how:
--   failed     charged: back with a backoff, or discarded (permanent, or no attempt left)
--   timed_out  the same with error_kind timeout
--   snoozed    back after p_delays_ms, uncharged
--   interrupted back with a backoff that grows with the reclaims, uncharged, reclaims + 1: the database or the network failed, not the
--              handler (R39). Past p_max_reclaims (null: no bound) it is discarded as reclaim_limit, because its own work may be the cause
--   released   back at once, uncharged, reclaims unchanged: an orderly shutdown
-- p_delays_ms overrides the backoff; null lets the database compute it (C16).
-- Runs that somebody else has locked come back as `busy`, unless p_wait_ms is given: then the (single) step waits that long (C2).
create or replace function cyclone_settle(
  p_owner text, p_outcomes text[], p_runs bigint[], p_nodes text[], p_generations int[],
  p_errors text[], p_error_kinds text[], p_stacks text[], p_fingerprints text[], p_delays_ms bigint[], p_max_reclaims int, p_wait_ms int
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
  v_now     timestamptz;
  v_item    record;
  v_step    cyclone_steps;
  v_missing boolean;
  v_failed  boolean;
begin
  if p_wait_ms is not null then
    perform set_config('lock_timeout', p_wait_ms || 'ms', true);
    perform 1 from cyclone_runs r where r.id = any(p_runs) order by r.id for no key update;
  end if;

  for v_item in
    select i.* from unnest(p_outcomes, p_runs, p_nodes, p_generations, p_errors, p_error_kinds, p_stacks, p_fingerprints, p_delays_ms)
      i(outcome, run_id, node, generation, error, error_kind, stack, fingerprint, delay_ms)
     order by i.run_id, i.node
  loop
    perform 1 from cyclone_runs r where r.id = v_item.run_id for no key update skip locked;
    v_missing := not found;
    if not v_missing then
      select * into v_step from cyclone_steps s
       where s.run_id = v_item.run_id and s.node = v_item.node and s.state = 'running' and s.lease_owner = p_owner
         and s.lease_generation = v_item.generation
         for no key update;
    end if;
    if v_missing or not found then
      event := case when v_missing and exists (select 1 from cyclone_runs r where r.id = v_item.run_id) then 'busy' else 'lease_lost' end;
      run_id := v_item.run_id; node := v_item.node; generation := v_item.generation;
      kind := null; queue := null; attempt := null; node_type := null; max_attempts := null; timeout_ms := null; input := null; info := null;
      return next;
      continue;
    end if;

    v_now := cyclone_now();                          -- under the lock, as in cyclone_flush
    v_failed := v_item.outcome in ('failed', 'timed_out');
    if v_failed and (v_item.error_kind = 'permanent' or v_step.attempt >= v_step.max_attempts) then
      return query select * from cyclone_give_up(v_now, v_item.run_id, v_item.node, v_item.outcome, v_item.error, v_item.error_kind, v_item.stack, v_item.fingerprint);
    elsif v_item.outcome = 'interrupted' then
      if v_step.reclaims >= p_max_reclaims then
        return query select * from cyclone_give_up(v_now, v_item.run_id, v_item.node, 'interrupted',
          format('interrupted again after %s reclaims: %s', v_step.reclaims, v_item.error), 'reclaim_limit', null, null);
      else
        return query select * from cyclone_put_back(v_now, v_item.run_id, v_item.node, 'interrupted',
          v_now + cyclone_ms(coalesce(v_item.delay_ms, cyclone_backoff('{"maxMs": 60000}', v_step.reclaims + 1))),
          v_step.attempt, v_step.reclaims + 1, v_item.error, null, null);
      end if;
    else
      return query select * from cyclone_put_back(
        v_now, v_item.run_id, v_item.node, case v_item.outcome when 'failed' then 'retried' else v_item.outcome end,
        case when v_item.outcome = 'released' then v_step.scheduled_at
             else v_now + cyclone_ms(coalesce(v_item.delay_ms, cyclone_backoff(v_step.backoff, v_step.attempt))) end,
        v_step.attempt + case when v_failed then 1 else 0 end, v_step.reclaims, v_item.error, v_item.error_kind, v_item.stack);
    end if;
  end loop;
end
$$;
