-- Looks further down the queues when others held the candidates of a claim: it takes them from the next ones, up to 64 times as many.
-- Candidates are read without locks, twice as many as there are free slots, and those that another worker is claiming are passed over.
-- When one with many free slots is claiming, one with few would else get nothing from a full queue and believe it to be empty.
-- p_slots: as the candidates were looked for; p_open: those that may be filled still; p_runs to p_step_queues: the candidates.
-- It does not go on when half of p_max_bytes is used up, which another claim may have been stopped by (C13).
create or replace function cyclone_claim_further(
  p_now timestamptz, p_owner text, p_lease_ms bigint, p_queues text[], p_slots int[], p_open int[], p_kinds text[], p_max_bytes bigint,
  p_runs bigint[], p_nodes text[], p_step_queues text[], p_heads jsonb
) returns table (
  run_id bigint, node text, kind text, queue text, attempt int, generation int,
  node_type text, max_attempts int, timeout_ms bigint, input jsonb, info jsonb
)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_slots  int[] := p_slots;
  v_open   int[] := p_open;
  v_left   bigint := p_max_bytes;
  v_runs   bigint[] := p_runs;
  v_nodes  text[] := p_nodes;
  v_queues text[] := p_step_queues;
  v_places bigint[];
begin
  for v_round in 1..2 loop
    -- A queue with fewer candidates than were looked for has no more; in the others the places that this call has not filled yet are open.
    with taken as (
      select s.queue, count(*)::int as n, sum(case when pg_column_size(s.input) > 1000 then octet_length(s.input::text) else 1000 end) as bytes
        from unnest(v_runs, v_nodes) c(run_id, node)
       cross join lateral (select t.* from cyclone_steps t where t.run_id = c.run_id and t.node = c.node offset 0) s -- by key (C1)
       where s.lease_owner = p_owner and s.started_at = p_now
       group by s.queue
    ), candidates as (
      select c.queue, count(*) as n from unnest(v_queues) c(queue) group by c.queue
    )
    select array_agg(case when c.n >= 2 * q.slots then greatest(q.open - coalesce(t.n, 0), 0) else 0 end order by q.place),
           v_left - coalesce(sum(t.bytes), 0)
      into v_open, v_left
      from unnest(p_queues, v_slots, v_open) with ordinality q(queue, slots, open, place)
      left join candidates c on c.queue = q.queue
      left join taken t on t.queue = q.queue;
    exit when not (0 < any(v_open)) or v_left < p_max_bytes / 2;

    select array_agg(case when o.open > 0 then 8 * o.slots else 0 end order by o.place) into v_slots
      from unnest(v_slots, v_open) with ordinality o(slots, open, place);
    select array_agg(c.run_id), array_agg(c.node), array_agg(c.queue), array_agg(c.place)
      into v_runs, v_nodes, v_queues, v_places
      from cyclone_claimable(p_now, p_queues, v_slots, p_kinds, p_heads) c;
    exit when v_runs is null;
    return query
      select * from cyclone_claim(p_now, p_owner, p_lease_ms, p_queues, v_open, v_left, v_runs, v_nodes, v_queues, v_places);
  end loop;
end
$$;
