-- The deadline scan (R27): discards what is not terminal in a run whose deadline has elapsed, with error_kind deadline, and fails
-- the run. A paused run has no deadline_at: its clock stands still (R26). Each run stands alone, as in the sweep.
create or replace function cyclone_deadlines(p_now timestamptz, p_limit int) returns table (
  event text, run_id bigint, node text, kind text, queue text, attempt int, generation int,
  node_type text, max_attempts int, timeout_ms bigint, input jsonb, info jsonb
)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_due   record;
  v_left  int := p_limit;                            -- runs to end; those that are locked or broken do not count
  v_error constant text := 'the deadline of the run has elapsed';
begin
  for v_due in select r.id from cyclone_runs r where r.deadline_at <= p_now order by r.deadline_at loop
    exit when v_left <= 0;
    begin
      perform 1 from cyclone_runs r where r.id = v_due.id and r.deadline_at <= p_now for no key update skip locked;
      if found then
        return query select * from cyclone_expire_run(v_due.id, v_error);
        v_left := v_left - 1;
      end if;
    exception when others then
      event := 'broken'; run_id := v_due.id; node := null; kind := null; queue := null; attempt := null; generation := null;
      node_type := null; max_attempts := null; timeout_ms := null; input := null;
      info := jsonb_build_object('error', sqlerrm, 'sqlstate', sqlstate);
      return next;
    end;
  end loop;
end
$$;
