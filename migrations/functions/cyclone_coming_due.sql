-- For each queue when the next step of these kinds comes due, in p_within_ms at most. As cyclone_claimable it walks the priorities in use
-- by a loose index scan, and reads one entry of each: its cost does not grow with the steps that are due or come due later.
-- p_heads: with which priority to begin in each queue, see cyclone_claim_heads; null begins with the first.
create or replace function cyclone_coming_due(p_now timestamptz, p_queues text[], p_kinds text[], p_within_ms bigint, p_heads jsonb)
returns table (queue text, at timestamptz)
language plpgsql volatile
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
  return query
  with recursive in_use as (
    select q.queue, k.kind,
           coalesce((p_heads -> q.queue ->> 'priority')::int, (select s.priority from cyclone_steps s
                                                                where s.state = 'available' and s.queue = q.queue and s.kind = k.kind
                                                                order by s.priority limit 1)) as priority
      from unnest(p_queues) q(queue) cross join unnest(p_kinds) k(kind)
    union all
    select u.queue, u.kind,
           (select s.priority from cyclone_steps s
             where s.state = 'available' and s.queue = u.queue and s.kind = u.kind and s.priority > u.priority
             order by s.priority limit 1)
      from in_use u
     where u.priority is not null
  )
  select u.queue, min(n.scheduled_at)
    from in_use u
   cross join lateral (
     select s.scheduled_at from cyclone_steps s
      where s.state = 'available' and s.queue = u.queue and s.kind = u.kind and s.priority = u.priority
        and s.scheduled_at > p_now and s.scheduled_at <= p_now + cyclone_ms(p_within_ms)
      order by s.scheduled_at
      limit 1
   ) n
   where u.priority is not null
   group by u.queue;
end
$$;
