-- Makes a worker known, or known again: it may have been forgotten while its process was stopped.
create or replace function cyclone_register_worker(
  p_id text, p_host text, p_pid int, p_version text, p_queues jsonb, p_kinds text[]
) returns void
language plpgsql volatile
set search_path from current
as $$
begin
  insert into cyclone_workers (id, host, pid, version, queues, kinds, started_at, last_seen_at)
  values (p_id, p_host, p_pid, p_version, p_queues, p_kinds, cyclone_now(), cyclone_now())
  on conflict (id) do update set last_seen_at = excluded.last_seen_at, draining = false;
end
$$;
