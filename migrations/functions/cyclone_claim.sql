-- Claims candidates for the free slots of each queue (R10): locks by key with SKIP LOCKED, rechecks the state, and takes at most
-- p_max_bytes of input (C13), but always one step. The attempt is not touched (R11). `backoff` in info: the step has one of its own, which
-- a backoff function of its handler does not replace (R9).
-- started_at is never before available_at: a step may have become available after this call has read the clock.
-- p_slots: as the candidates were looked for; p_open: those that may be filled still; p_runs to p_places: the candidates.
-- Candidates are read without locks, and those that another worker is claiming are passed over. When one with many free slots is claiming,
-- one with few would else get nothing from a full queue and believe it to be empty: so it goes further down the queue, to up to 64 times
-- as many candidates, unless half of p_max_bytes is used up, which may be why it claimed no more.
create or replace function cyclone_claim(
  p_now timestamptz, p_owner text, p_lease_ms bigint, p_queues text[], p_slots int[], p_open int[], p_kinds text[], p_max_bytes bigint,
  p_runs bigint[], p_nodes text[], p_step_queues text[], p_places bigint[], p_heads jsonb
) returns table (
  run_id bigint, node text, kind text, queue text, attempt int, generation int,
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
  v_queue  record;
  v_slots  int;
  v_open   int;
  v_left   bigint := p_max_bytes;
  v_runs   bigint[];
  v_nodes  text[];
  v_places bigint[];
  v_row    record;
begin
  for v_queue in select q.queue, q.slots, q.open from unnest(p_queues, p_slots, p_open) q(queue, slots, open) where q.open > 0 loop
    v_slots := v_queue.slots;
    v_open := v_queue.open;
    select array_agg(c.run_id), array_agg(c.node), array_agg(c.place) into v_runs, v_nodes, v_places
      from unnest(p_runs, p_nodes, p_step_queues, p_places) c(run_id, node, queue, place)
     where c.queue = v_queue.queue;
    for v_round in 1..3 loop
      exit when v_runs is null;
      for v_row in
        -- The concatenation hides the state from the planner, which would else prefer the claim index to the key (C1).
        with picked as materialized (
          select s.run_id, s.node, c.place, s.bytes
            from (select u.run_id, u.node, u.place from unnest(v_runs, v_nodes, v_places) u(run_id, node, place) order by u.place) c
           cross join lateral (
             select t.run_id, t.node, case when pg_column_size(t.input) > 1000 then octet_length(t.input::text) else 1000 end as bytes
               from cyclone_steps t
              where t.run_id = c.run_id and t.node = c.node and t.state || '' = 'available' and t.queue = v_queue.queue and t.scheduled_at <= p_now
                for no key update skip locked
           ) s
           limit v_open
        ), bounded as (
          select p.run_id, p.node, p.bytes, sum(p.bytes) over (order by p.place) as so_far, row_number() over (order by p.place) as n from picked p
        )
        update cyclone_steps t
           set state = 'running', lease_owner = p_owner, lease_generation = t.lease_generation + 1, started_at = greatest(p_now, t.available_at),
               lease_expiry = p_now + cyclone_ms(least(p_lease_ms, t.timeout_ms))
          from bounded b
         where t.run_id = b.run_id and t.node = b.node and (b.so_far <= v_left or (b.n = 1 and v_left = p_max_bytes))
        returning t.run_id, t.node, t.kind, t.queue, t.attempt, t.lease_generation, t.node_type, t.max_attempts, t.timeout_ms, t.input, t.backoff, b.bytes
      loop
        v_left := v_left - v_row.bytes;
        v_open := v_open - 1;
        run_id := v_row.run_id; node := v_row.node; kind := v_row.kind; queue := v_row.queue; attempt := v_row.attempt;
        generation := v_row.lease_generation; node_type := v_row.node_type; max_attempts := v_row.max_attempts;
        timeout_ms := v_row.timeout_ms; input := v_row.input;
        info := case when v_row.backoff is not null then '{"backoff": true}'::jsonb end;
        return next;
      end loop;

      -- Fewer candidates than were looked for: the queue has no more.
      exit when v_round = 3 or v_open = 0 or cardinality(v_runs) < 2 * v_slots or v_left < p_max_bytes / 2;
      v_slots := 8 * v_slots;
      select array_agg(c.run_id), array_agg(c.node), array_agg(c.place) into v_runs, v_nodes, v_places
        from cyclone_claimable(p_now, array[v_queue.queue], array[v_slots], p_kinds, p_heads) c;
    end loop;
  end loop;
end
$$;
