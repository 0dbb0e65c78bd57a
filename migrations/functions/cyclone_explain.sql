-- Why a node is not running, as one JSON document: how it stands and `reasons`, the most telling first, each {code, ...}. Null when there is
-- no such run; without `state` when the run has no such node. Changes nothing.
--   completed, discarded, cancelled | waits_for_connection {worker, since}, running, lease_expired | run_paused | scheduled, backoff {at}
--   dependencies {open, total, nodes}, unreachable {nodes}, missed_promotion, items {open, total}, item_concurrency {limit}
--   clock_set_back {was, now} after scheduled or backoff
--   timer, signal, child {wakeAt}  | no_worker {deadWorkers, drainingWorkers, otherWorkers, lastSeenAt}, no_free_slot {slots, running}, queued {ahead}, due
create or replace function cyclone_explain(p_run bigint, p_node text, p_dead_after_ms bigint) returns jsonb
language plpgsql stable
set search_path from current
set enable_seqscan = off
as $$
declare
  v_now     timestamptz := cyclone_now();
  v_alive   timestamptz := v_now - cyclone_ms(p_dead_after_ms);
  v_run     cyclone_runs;
  v_step    cyclone_steps;
  v_reasons jsonb := '[]';
  v_row     record;
  v_slots   bigint;
  v_busy    bigint;
  v_ahead   bigint;
begin
  select * into v_run from cyclone_runs r where r.id = p_run;
  if not found then
    return null;
  end if;
  select * into v_step from cyclone_steps s where s.run_id = p_run and s.node = p_node;
  if not found then
    return jsonb_build_object('runId', p_run::text, 'runState', v_run.state, 'node', p_node);
  end if;

  if v_step.state in ('completed', 'discarded', 'cancelled') then
    v_reasons := v_reasons || jsonb_build_object('code', v_step.state, 'at', cyclone_iso(v_step.finished_at), 'error', v_step.error,
      'errorKind', v_step.error_kind, 'contained', v_step.contained);
  elsif v_step.state = 'running' then
    v_reasons := v_reasons || (jsonb_build_object('code', case when v_step.lease_expiry < v_now then 'lease_expired' else 'running' end,
      'worker', v_step.lease_owner, 'since', cyclone_iso(v_step.started_at), 'leaseExpiry', cyclone_iso(v_step.lease_expiry),
      'workerSeenAt', (select cyclone_iso(w.last_seen_at) from cyclone_workers w where w.id = v_step.lease_owner))
      -- Who let its lease expire is not counted among those that could reclaim it, however short ago it was seen.
      || (select jsonb_build_object('liveWorkers', count(*) filter (where w.last_seen_at >= v_alive
                                                     and (w.id <> v_step.lease_owner or v_step.lease_expiry >= v_now)),
                                    'lastSeenAt', cyclone_iso(max(w.last_seen_at)))
            from cyclone_workers w));
    select w.id, to_timestamp((w.waiting ->> (p_run || ':' || p_node))::bigint / 1000.0) as since into v_row
      from cyclone_workers w
     where w.id = v_step.lease_owner and w.last_seen_at >= v_alive and w.waiting ? (p_run || ':' || p_node);
    if found then
      v_reasons := jsonb_build_object('code', 'waits_for_connection', 'worker', v_row.id, 'since', cyclone_iso(v_row.since)) || v_reasons;
    end if;
  end if;

  if v_run.state = 'paused' and v_step.state in ('pending', 'paused') then
    v_reasons := v_reasons || jsonb_build_object('code', 'run_paused', 'at', cyclone_iso(v_run.paused_at));
  end if;

  if v_step.state = 'pending' then
    select count(*) as total, count(*) filter (where e.state is distinct from 'completed') as open,
           (jsonb_agg(jsonb_build_object('node', e.depends_on, 'state', e.state) order by e.depends_on) filter (where e.state is distinct from 'completed'))
             as nodes,
           jsonb_agg(jsonb_build_object('node', e.depends_on, 'state', e.state) order by e.depends_on)
             filter (where e.state is null or e.state in ('discarded', 'cancelled')) as dead
      into v_row
      from (select d.depends_on, u.state from cyclone_deps d left join cyclone_steps u on u.run_id = d.run_id and u.node = d.depends_on
             where d.run_id = p_run and d.node = p_node) e;
    if v_row.dead is not null then
      v_reasons := v_reasons || jsonb_build_object('code', 'unreachable', 'nodes', jsonb_path_query_array(v_row.dead, '$[0 to 99]'));
    end if;
    if v_row.open > 0 then
      v_reasons := v_reasons || jsonb_build_object('code', 'dependencies', 'open', v_row.open, 'total', v_row.total,
        'nodes', jsonb_path_query_array(v_row.nodes, '$[0 to 99]'));
    elsif v_step.node_type = 'item' then
      v_reasons := v_reasons || jsonb_build_object('code', 'item_concurrency', 'node', v_step.parent_node,
        'limit', (select f.concurrency from cyclone_steps f where f.run_id = p_run and f.node = v_step.parent_node));
    elsif v_step.node_type = 'fan_out' then
      v_reasons := v_reasons || (
        select jsonb_build_object('code', 'items', 'open', count(*) filter (where i.state not in ('completed', 'discarded', 'cancelled')), 'total', count(*))
          from cyclone_steps i where i.run_id = p_run and i.parent_node = p_node);
    elsif v_run.state = 'running' then
      v_reasons := v_reasons || jsonb_build_object('code', 'missed_promotion');
    end if;
  elsif v_step.state like 'waiting%' then
    v_reasons := v_reasons || jsonb_build_object('code', substr(v_step.state, 9), 'wakeAt', cyclone_iso(v_step.wake_at),
      'due', coalesce(v_step.wake_at <= v_now, false));
    if v_step.state = 'waiting_child' then
      v_reasons := jsonb_set(v_reasons, '{0}', (v_reasons -> 0) || (
        select jsonb_build_object('childRunId', max(c.id)::text, 'childState', max(c.state)) from cyclone_runs c
         where c.parent_run_id = p_run and c.parent_node = p_node));
    end if;
  elsif v_step.state = 'available' then
    if v_step.scheduled_at > v_now then
      v_reasons := v_reasons || jsonb_build_object('code', case when v_step.error is not null then 'backoff' else 'scheduled' end,
        'at', cyclone_iso(v_step.scheduled_at), 'error', v_step.error);
      select max(c.at) as was into v_row
        from (select max(w.last_seen_at) as at from cyclone_workers w union all select m.at from cyclone_marks m where m.name = 'clock_was') c;
      if v_row.was > v_now + interval '2 seconds' then
        v_reasons := v_reasons || jsonb_build_object('code', 'clock_set_back', 'was', cyclone_iso(v_row.was), 'now', cyclone_iso(v_now));
      end if;
    end if;
    select sum((w.queues ->> v_step.queue)::bigint), sum(coalesce(b.running, 0)) into v_slots, v_busy
      from cyclone_workers w
      left join (select s.lease_owner, count(*) as running from cyclone_steps s where s.state = 'running' and s.queue = v_step.queue group by s.lease_owner) b
        on b.lease_owner = w.id
     where not w.draining and w.last_seen_at >= v_alive and v_step.kind = any(w.kinds) and w.queues ? v_step.queue;
    if v_slots is null then
      v_reasons := v_reasons || (
        select jsonb_build_object('code', 'no_worker',
                 'deadWorkers', count(*) filter (where s.serves and w.last_seen_at < v_alive),
                 'drainingWorkers', count(*) filter (where s.serves and w.last_seen_at >= v_alive),
                 'otherWorkers', count(*) filter (where not s.serves and w.last_seen_at >= v_alive),
                 'lastSeenAt', cyclone_iso(coalesce(max(w.last_seen_at) filter (where s.serves), max(w.last_seen_at))))
          from cyclone_workers w cross join lateral (select v_step.kind = any(w.kinds) and w.queues ? v_step.queue as serves) s);
    elsif v_step.scheduled_at <= v_now then
      if v_busy >= v_slots then
        v_reasons := v_reasons || jsonb_build_object('code', 'no_free_slot', 'slots', v_slots, 'running', v_busy);
      end if;
      select count(*) into v_ahead
        from (select 1 from cyclone_steps s
               where s.state = 'available' and s.queue = v_step.queue and s.kind = v_step.kind and s.scheduled_at <= v_now
                 and (s.priority, s.scheduled_at, s.run_id) < (v_step.priority, v_step.scheduled_at, v_step.run_id)
               limit 10000) a;
      v_reasons := v_reasons || case when v_ahead > 0 then jsonb_build_object('code', 'queued', 'ahead', v_ahead) else jsonb_build_object('code', 'due', 'workerSeenAt', (
          select cyclone_iso(max(w.last_seen_at)) from cyclone_workers w
           where not w.draining and w.last_seen_at >= v_alive and v_step.kind = any(w.kinds) and w.queues ? v_step.queue)) end;
    end if;
  end if;

  return jsonb_build_object('runId', p_run::text, 'runState', v_run.state, 'workflow', v_run.workflow, 'node', p_node, 'nodeType', v_step.node_type,
    'kind', v_step.kind, 'queue', v_step.queue, 'priority', v_step.priority, 'state', v_step.state, 'attempt', v_step.attempt,
    'maxAttempts', v_step.max_attempts, 'reclaims', v_step.reclaims, 'reasons', (
      select coalesce(jsonb_agg(jsonb_strip_nulls(r.reason) order by r.i), '[]') from jsonb_array_elements(v_reasons) with ordinality r(reason, i)));
end
$$;
