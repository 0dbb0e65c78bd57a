-- The housekeeping of a running worker in one call (R19), once for each poll interval: "last seen", the recovery sweep, the deadline scan,
-- a piece of the check for stranded runs and the poll, which only says which of our queues hold work that is due (`due`): the lanes claim it. `later` says
-- when the next work of a queue comes due, if that is in p_within_ms: nobody has to wait for the next tick for it.
-- p_waiting names steps of this worker that wait for a connection, p_problems what keeps it from working, both for operators.
-- p_sweep is false while this process has not been connected for long enough to judge others (C8).
create or replace function cyclone_tick(
  p_worker text, p_queues text[], p_kinds text[], p_max_reclaims int, p_sweep boolean, p_limit int,
  p_waiting jsonb, p_within_ms bigint, p_problems text[]
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
  v_now   timestamptz := cyclone_now();
  v_heads jsonb := cyclone_claim_heads(p_kinds);
  v_back  bigint := cyclone_notice_clock(v_now, 20000);
begin
  if v_back is not null then
    return query select 'clock_set_back', null::bigint, null::text, null::text, null::text, null::int, null::int,
                        null::text, null::int, null::bigint, null::jsonb, jsonb_build_object('delayMs', v_back);
  end if;
  update cyclone_workers w set last_seen_at = v_now, waiting = p_waiting, problems = p_problems where w.id = p_worker;
  if not found then
    return query select 'unknown_worker', null::bigint, null::text, null::text, null::text, null::int, null::int,
                        null::text, null::int, null::bigint, null::jsonb, null::jsonb;
  end if;
  if p_sweep then
    return query select * from cyclone_sweep(v_now, p_max_reclaims, p_limit);
    return query select * from cyclone_deadlines(v_now, p_limit);
    perform cyclone_end_orphans(v_now);
    begin
      perform cyclone_check_stranded(v_now, 10000);
    exception when others then
      -- It only watches: what it cannot do must not undo the sweep.
      return query select 'broken', null::bigint, null::text, null::text, null::text, null::int, null::int, null::text, null::int, null::bigint,
                          null::jsonb, jsonb_build_object('error', sqlerrm, 'sqlstate', sqlstate);
    end;
  end if;
  return query
    select 'due', null::bigint, null::text, null::text, q.queue, null::int, null::int, null::text, null::int, null::bigint, null::jsonb, null::jsonb
      from unnest(p_queues) q(queue)
     where exists (select 1 from cyclone_claimable(v_now, array[q.queue], array[1], p_kinds, v_heads))
        or (v_heads is not null and exists (select 1 from cyclone_claimable(v_now, array[q.queue], array[1], p_kinds, null)));
  return query
    select 'later', null::bigint, null::text, null::text, d.queue, null::int, null::int, null::text, null::int, null::bigint, null::jsonb,
           jsonb_build_object('delayMs', ceil(extract(epoch from d.at - v_now) * 1000))
      from cyclone_coming_due(v_now, p_queues, p_kinds, p_within_ms, v_heads) d;
end
$$;
