-- The hot path (DESIGN 8): completes a batch of finished steps, promotes their dependents, ends runs and claims new work
-- for the free slots. One round trip, one commit, and it never waits for another transaction (C2):
--   busy        the run is locked by somebody else: the step joins the next flush
--   lease_lost  the step is no longer ours (R12): the result is dropped
--   promoted, waiting  a dependent became available or began to wait
--   claimed     a step to execute, with all that the worker needs; `promoted` in info: it became available in the same statement
--   run_*       the run has ended
create or replace function cyclone_flush(
  p_owner text, p_lease_ms bigint,
  p_runs bigint[], p_nodes text[], p_generations int[], p_outputs jsonb[],
  p_queues text[], p_slots int[], p_kinds text[], p_max_bytes bigint
) returns table (
  event text, run_id bigint, node text, kind text, queue text, attempt int, generation int,
  node_type text, max_attempts int, timeout_ms bigint, input jsonb, info jsonb
)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_now          timestamptz;
  v_locked       bigint[];
  v_running      bigint[];
  v_done_runs    bigint[];
  v_done_nodes   text[];
  v_done_gens    int[];
  v_parent_runs  bigint[];
  v_parent_nodes text[];
  v_runs         bigint[];
  v_nodes        text[];
  v_queues       text[];
  v_priorities   int[];
  v_scheduled    timestamptz[];
  v_places       bigint[];
  v_slots        int[] := p_slots;
  v_event        record;
  v_note         text := current_setting('cyclone.claim_heads', true);
  -- Entries that a search may walk over before it is worth a note; cyclone.claim_entries is another number, for tests.
  v_many         int := coalesce(nullif(current_setting('cyclone.claim_entries', true), ''), '20000');
  v_heads        jsonb;
  v_begun        timestamptz;
  v_entries      bigint;
  v_free         boolean := 0 < any(p_slots);
begin
  if cardinality(p_runs) > 0 then
    -- LOCK the runs, never waiting.
    select coalesce(array_agg(l.id), '{}'), coalesce(array_agg(l.id) filter (where l.state = 'running'), '{}') into v_locked, v_running
      from (select r.id, r.state from cyclone_runs r where r.id = any(p_runs) order by r.id for no key update skip locked) l;
  end if;

  -- Only now: a time that was taken before a lock may lie before what the last holder of that lock did, and a dependent would seem to have
  -- begun before its dependency ended.
  v_now := cyclone_now();

  if cardinality(p_runs) > 0 then

    -- SETTLE: compare-and-swap on state, owner and generation (R12). An owner implies the state running (a constraint of the table);
    -- to name the state would offer the planner the partial index on running steps instead of the key (C1).
    with done as (
      update cyclone_steps s
         set state = 'completed', output = c.output, finished_at = v_now, lease_owner = null, lease_expiry = null,
             error = null, error_kind = null, panic_stack = null
        from unnest(p_runs, p_nodes, p_generations, p_outputs) c(run_id, node, generation, output)
       where s.run_id = c.run_id and s.node = c.node and s.lease_owner = p_owner
         and s.lease_generation = c.generation and c.run_id = any(v_locked)
      returning s.run_id, s.node, s.lease_generation, s.dependents
    )
    select array_agg(d.run_id), array_agg(d.node), array_agg(d.lease_generation),
           array_agg(d.run_id) filter (where d.dependents > 0), array_agg(d.node) filter (where d.dependents > 0)
      into v_done_runs, v_done_nodes, v_done_gens, v_parent_runs, v_parent_nodes
      from done d;

    if coalesce(cardinality(v_done_runs), 0) < cardinality(p_runs) then
      return query
        select case when c.run_id = any(v_locked) or r.id is null then 'lease_lost' else 'busy' end,
               c.run_id, c.node, null::text, null::text, null::int, c.generation,
               null::text, null::int, null::bigint, null::jsonb, null::jsonb
          from unnest(p_runs, p_nodes, p_generations) c(run_id, node, generation)
          left join cyclone_runs r on r.id = c.run_id
         where not exists (select 1 from unnest(v_done_runs, v_done_nodes, v_done_gens) d(run_id, node, generation)
                            where d.run_id = c.run_id and d.node = c.node and d.generation = c.generation);
    end if;
  end if;

  if v_free then
    if v_note <> '' then
      v_heads := cyclone_claim_heads(p_kinds);
    end if;
    loop
      v_begun := clock_timestamp();
      v_entries := pg_stat_get_xact_tuples_returned('cyclone_steps_claim'::regclass);
      select array_agg(c.run_id), array_agg(c.node), array_agg(c.queue), array_agg(c.priority), array_agg(c.scheduled_at), array_agg(c.place)
        into v_runs, v_nodes, v_queues, v_priorities, v_scheduled, v_places
        from cyclone_claimable(v_now, p_queues, p_slots, p_kinds, v_heads) c;
      exit when v_heads is null or not exists (
        select 1 from unnest(p_queues, p_slots) q(queue, slots)
         where v_heads ? q.queue and q.slots > (select count(*) from unnest(v_queues) f(queue) where f.queue = q.queue));
      v_heads := null;
    end loop;
    v_entries := pg_stat_get_xact_tuples_returned('cyclone_steps_claim'::regclass) - v_entries;
    if v_heads is null and v_entries >= v_many then
      perform cyclone_note_claim_heads(v_begun, v_entries - v_many, p_slots, p_kinds, v_queues, v_priorities, v_scheduled, v_places);
    end if;
  end if;

  -- ADVANCE: promotes dependents, and claims at once those that the claim would have taken anyway.
  if v_done_runs is not null then
    for v_event in
      select * from cyclone_advance(v_now, v_done_runs, v_parent_runs, v_parent_nodes, v_running,
        p_owner, p_lease_ms, p_queues, p_slots, p_kinds, p_max_bytes, v_runs, v_nodes, v_queues, v_priorities, v_scheduled)
    loop
      if v_event.event = 'claimed' then
        v_slots[array_position(p_queues, v_event.queue)] := v_slots[array_position(p_queues, v_event.queue)] - 1;
      end if;
      event := v_event.event; run_id := v_event.run_id; node := v_event.node; kind := v_event.kind; queue := v_event.queue;
      attempt := v_event.attempt; generation := v_event.generation; node_type := v_event.node_type;
      max_attempts := v_event.max_attempts; timeout_ms := v_event.timeout_ms; input := v_event.input; info := v_event.info;
      return next;
    end loop;
  end if;

  -- CLAIM, always last: after it nothing may wait.
  if v_runs is not null then
    return query
      select 'claimed', c.run_id, c.node, c.kind, c.queue, c.attempt, c.generation, c.node_type, c.max_attempts, c.timeout_ms, c.input,
             c.info
        from cyclone_claim(v_now, p_owner, p_lease_ms, p_queues, p_slots, v_slots, p_kinds, p_max_bytes, v_runs, v_nodes, v_queues, v_places,
                           v_heads) c;
  end if;
end
$$;
