-- What nobody does: queue and kind of available steps that no live worker serves (R3), with how many are due (counted up to 1,000) and
-- since when the oldest of them is. The pairs in use are walked by a loose scan of the claim index.
create or replace function cyclone_unserved(p_dead_after_ms bigint) returns table (queue text, kind text, due bigint, oldest timestamptz)
language plpgsql stable
set search_path from current
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz := cyclone_now();
begin
  return query
  with recursive pairs as (
    (select s.queue, s.kind from cyclone_steps s where s.state = 'available' order by s.queue, s.kind limit 1)
    union all
    select n.queue, n.kind
      from pairs p
     cross join lateral (
       select s.queue, s.kind from cyclone_steps s
        where s.state = 'available' and (s.queue, s.kind) > (p.queue, p.kind)
        order by s.queue, s.kind limit 1
     ) n
  )
  select p.queue, p.kind, d.due, d.oldest
    from pairs p
   cross join lateral (
     select count(*) as due, min(greatest(t.scheduled_at, t.available_at)) as oldest
       from (select s.scheduled_at, s.available_at from cyclone_steps s
              where s.state = 'available' and s.queue = p.queue and s.kind = p.kind and s.scheduled_at <= v_now limit 1000) t
   ) d
   where not exists (
     select 1 from cyclone_workers w
      where not w.draining and w.last_seen_at >= v_now - cyclone_ms(p_dead_after_ms) and p.kind = any(w.kinds) and w.queues ? p.queue);
end
$$;
