-- The open steps by queue, kind and state (R34), exactly: how many, how many of the available ones are due and for how long the oldest of
-- these has been, how many leases have expired. It reads only what the partial indexes on open steps hold.
create or replace function cyclone_open_counts() returns table (
  queue text, kind text, state text, steps bigint, due bigint, oldest_due_ms bigint, expired bigint
)
language plpgsql stable
set search_path from current
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz := cyclone_now();
begin
  return query
  select o.queue, o.kind, o.state, count(*),
         count(*) filter (where o.state = 'available' and o.scheduled_at <= v_now),
         (max(extract(epoch from v_now - greatest(o.scheduled_at, o.available_at))) filter (where o.state = 'available' and o.scheduled_at <= v_now)
           * 1000)::bigint,
         count(*) filter (where o.state = 'running' and o.lease_expiry < v_now)
    from (
      select s.queue, s.kind, s.state, s.scheduled_at, s.available_at, s.lease_expiry from cyclone_steps s where s.state = 'available'
      union all
      select s.queue, s.kind, s.state, s.scheduled_at, s.available_at, s.lease_expiry from cyclone_steps s where s.state = 'running'
      union all
      select s.queue, s.kind, s.state, s.scheduled_at, s.available_at, s.lease_expiry from cyclone_steps s
       where s.state in ('pending', 'waiting_timer', 'waiting_signal', 'waiting_child', 'paused')
    ) o
   group by o.queue, o.kind, o.state;
end
$$;
