-- Completes one step inside the completion transaction, which the worker commits in the same message (R13): the output is stored,
-- dependents become available and the run ends together with the handler's own writes, or none of it.
-- It raises, so that the commit behind it cannot happen:
--   CY001  the lease is no longer ours (R12)
--   CY002  the transaction is not the one that the worker began: the handler committed or rolled back by itself (C5)
-- Raising is right here and only here: the transaction is the engine's own, and to abort it is the point (docs/decisions).
-- After the run's lock is taken nothing waits for a row of the application (C6); deferred constraints were checked before.
create or replace function cyclone_complete(
  p_lease text, p_owner text, p_run bigint, p_node text, p_generation int, p_output jsonb
) returns table (
  event text, run_id bigint, node text, kind text, queue text, attempt int, generation int,
  node_type text, max_attempts int, timeout_ms bigint, input jsonb, info jsonb
)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_event record;
begin
  if current_setting('cyclone.lease', true) is distinct from p_lease then
    raise exception 'the completion transaction of step % of run % was ended by its handler', p_node, p_run using errcode = 'CY002';
  end if;
  perform 1 from cyclone_runs r where r.id = p_run for no key update;
  for v_event in
    select * from cyclone_flush(p_owner, 0, array[p_run], array[p_node], array[p_generation], array[p_output],
      '{}', '{}', '{}', 0)
  loop
    if v_event.event in ('lease_lost', 'busy') then
      raise exception 'the lease of step % of run % is no longer held', p_node, p_run using errcode = 'CY001';
    end if;
    event := v_event.event; run_id := v_event.run_id; node := v_event.node; kind := v_event.kind; queue := v_event.queue;
    attempt := v_event.attempt; generation := v_event.generation; node_type := v_event.node_type; max_attempts := v_event.max_attempts;
    timeout_ms := v_event.timeout_ms; input := v_event.input; info := v_event.info;
    return next;
  end loop;
end
$$;
