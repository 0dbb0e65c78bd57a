-- The steps that a claim would take next, best first, up to twice the free slots of each queue (R10). Takes no lock.
-- It walks the priorities in use by a loose index scan and reads, for each queue, kind and priority, one index range that
-- ends at the present: its cost does not grow with future steps, kinds that nobody here serves, or finished work.
-- p_heads: where to begin in each queue, see cyclone_claim_heads; null searches all of it.
create or replace function cyclone_claimable(
  p_now timestamptz, p_queues text[], p_slots int[], p_kinds text[], p_heads jsonb
) returns table (run_id bigint, node text, queue text, priority int, scheduled_at timestamptz, place bigint)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
  return query
  with recursive served as (
    select q.queue, q.slots, k.kind, (p_heads -> q.queue ->> 'priority')::int as head, (p_heads -> q.queue ->> 'at')::timestamptz as head_at
      from unnest(p_queues, p_slots) q(queue, slots) cross join unnest(p_kinds) k(kind)
     where q.slots > 0
  ), in_use as (
    select v.*, coalesce(v.head, (select s.priority from cyclone_steps s
                                   where s.state = 'available' and s.queue = v.queue and s.kind = v.kind
                                   order by s.priority limit 1)) as priority
      from served v
    union all
    select u.queue, u.slots, u.kind, null::int, null::timestamptz,
           (select s.priority from cyclone_steps s
             where s.state = 'available' and s.queue = u.queue and s.kind = u.kind and s.priority > u.priority
             order by s.priority limit 1)
      from in_use u
     where u.priority is not null
  ), found as (
    select u.queue, u.slots, c.run_id, c.node, u.priority, c.scheduled_at
      from in_use u
     cross join lateral (
       select s.run_id, s.node, s.scheduled_at from cyclone_steps s
        where s.state = 'available' and s.queue = u.queue and s.kind = u.kind and s.priority = u.priority
          and s.scheduled_at <= p_now and s.scheduled_at >= coalesce(u.head_at, '-infinity')
        order by s.scheduled_at, s.run_id
        limit 2 * u.slots
     ) c
     where u.priority is not null
  ), placed as (
    select f.*, row_number() over (partition by f.queue order by f.priority, f.scheduled_at, f.run_id, f.node) as place from found f
  )
  select p.run_id, p.node, p.queue, p.priority, p.scheduled_at, p.place from placed p where p.place <= 2 * p.slots;
end
$$;
