-- The recovery sweep (R17, R19): takes steps whose lease has expired off their worker. A step past its timeout is charged an attempt;
-- any other is reclaimed uncharged, until p_max_reclaims (null: no bound), when it is discarded as reclaim_limit.
-- Candidates are read without locks, runs and steps locked with SKIP LOCKED and rechecked (C2); each step stands alone, so that
-- one locked or broken row keeps nobody else waiting: `stuck` names a step whose run is locked (perhaps by its own
-- completion transaction, which the caller ends by its mark, C3), `broken` one that raised an error. Neither counts towards p_limit,
-- else enough of them would keep the sweep from the rest for ever.
create or replace function cyclone_sweep(p_now timestamptz, p_max_reclaims int, p_limit int) returns table (
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
  v_expired record;
  v_step    cyclone_steps;
  v_problem text;
  v_left    int := p_limit;
  v_timed_out text;
begin
  for v_expired in
    select s.run_id, s.node, s.kind, s.queue, s.lease_generation from cyclone_steps s
     where s.state = 'running' and s.lease_expiry < p_now
     order by s.lease_expiry
  loop
    exit when v_left <= 0;
    v_problem := null;
    begin
      perform 1 from cyclone_runs r where r.id = v_expired.run_id for no key update skip locked;
      if not found then
        v_problem := 'stuck';
      else
        select * into v_step from cyclone_steps s
         where s.run_id = v_expired.run_id and s.node = v_expired.node and s.state = 'running' and s.lease_expiry < p_now
           for no key update skip locked;
        if found then
          v_now := cyclone_now();                    -- under the locks, as in cyclone_flush
          if v_step.started_at + cyclone_ms(v_step.timeout_ms) <= p_now then
            v_timed_out := format('The execution took longer than its timeout of %s ms.', v_step.timeout_ms);
            if v_step.attempt >= v_step.max_attempts then
              return query select * from cyclone_give_up(v_now, v_step.run_id, v_step.node, 'timed_out', v_timed_out, 'timeout', null, null);
            else
              return query select * from cyclone_put_back(v_now, v_step.run_id, v_step.node, 'timed_out',
                v_now + cyclone_ms(cyclone_backoff(v_step.backoff, v_step.attempt)), v_step.attempt + 1, v_step.reclaims,
                v_timed_out, 'timeout', null);
            end if;
          elsif v_step.reclaims >= p_max_reclaims then
            return query select * from cyclone_give_up(v_now, v_step.run_id, v_step.node, 'reclaimed',
              format('the lease expired again after %s reclaims', v_step.reclaims), 'reclaim_limit', null, null);
          else
            return query select * from cyclone_put_back(v_now, v_step.run_id, v_step.node, 'reclaimed', v_step.scheduled_at,
              v_step.attempt, v_step.reclaims + 1, null, null, null);
          end if;
          v_left := v_left - 1;
        end if;
      end if;
    exception when others then
      v_problem := 'broken';
      info := jsonb_build_object('error', sqlerrm, 'sqlstate', sqlstate);
    end;
    if v_problem is not null then
      event := v_problem; run_id := v_expired.run_id; node := v_expired.node; kind := v_expired.kind; queue := v_expired.queue;
      attempt := null; generation := v_expired.lease_generation; node_type := null; max_attempts := null; timeout_ms := null; input := null;
      return next;
      info := null;
    end if;
  end loop;
end
$$;
