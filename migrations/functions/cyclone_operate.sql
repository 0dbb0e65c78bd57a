-- An operator's change of one run with its audit row, in one transaction: cancel, pause, resume, retry (of p_node) or retry_all.
-- Answers what the function of that action answers. A refusal changes nothing and leaves no audit row; `affected` counts the steps that
-- were changed. p_detail is kept as it is: a bulk action says there which one it was.
create or replace function cyclone_operate(
  p_action text, p_run bigint, p_node text, p_additional int, p_reason text, p_actor text, p_detail jsonb
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
  v_node     text := case when p_action = 'retry' then p_node end;
  v_row      record;
  v_refused  boolean := false;
  v_affected bigint := 0;
begin
  for v_row in
    select * from cyclone_cancel(p_run, p_reason) where p_action = 'cancel'
    union all
    select * from cyclone_pause(p_run) where p_action = 'pause'
    union all
    select * from cyclone_resume(p_run) where p_action = 'resume'
    union all
    select * from cyclone_retry(p_run, v_node, p_additional, p_reason) where p_action = 'retry_all' or (p_action = 'retry' and p_node is not null)
    union all
    select * from cyclone_refuse('node_not_found', p_run, null, null) where p_action = 'retry' and p_node is null
    union all
    select * from cyclone_refuse('unknown_action', p_run, p_node, null)
     where p_action is null or p_action not in ('cancel', 'pause', 'resume', 'retry', 'retry_all')
  loop
    v_refused := v_refused or v_row.event = 'refused';
    v_affected := v_affected + case when v_row.event in ('cancelled', 'paused', 'resumed', 'reopened') then 1 else 0 end;
    event := v_row.event; run_id := v_row.run_id; node := v_row.node; kind := v_row.kind; queue := v_row.queue; attempt := v_row.attempt;
    generation := v_row.generation; node_type := v_row.node_type; max_attempts := v_row.max_attempts; timeout_ms := v_row.timeout_ms;
    input := v_row.input; info := v_row.info;
    return next;
  end loop;
  if not v_refused then
    perform cyclone_write_audit(p_actor, p_action, p_run, v_node, p_reason, v_affected,
      nullif(coalesce(p_detail, '{}') || case when p_additional > 0 and p_action in ('retry', 'retry_all')
                                              then jsonb_build_object('additionalAttempts', p_additional) else '{}' end, '{}'));
  end if;
end
$$;
