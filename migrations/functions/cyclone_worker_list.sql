-- The known workers: `dead` have not been seen for p_dead_after_ms, `draining` claim nothing more, `busy` execute something, `idle` could.
-- One that ended in order is not listed; a dead one is, until cyclone_forget_workers.
create or replace function cyclone_worker_list(p_dead_after_ms bigint) returns table (
  id text, host text, pid int, version text, queues jsonb, kinds text[], started_at timestamptz, last_seen_at timestamptz,
  draining boolean, running bigint, status text, waiting jsonb, problems text[]
)
language plpgsql stable
set search_path from current
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  return query
  select w.id, w.host, w.pid, w.version, w.queues, w.kinds, w.started_at, w.last_seen_at, w.draining, coalesce(b.running, 0),
         case when w.last_seen_at < cyclone_now() - cyclone_ms(p_dead_after_ms) then 'dead'
              when w.draining then 'draining'
              when b.running > 0 then 'busy'
              else 'idle' end,
         w.waiting, w.problems
    from cyclone_workers w
    left join (select s.lease_owner, count(*) as running from cyclone_steps s where s.state = 'running' group by s.lease_owner) b
      on b.lease_owner = w.id
   order by w.started_at, w.id;
end
$$;
