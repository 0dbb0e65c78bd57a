-- Forgets workers that have not been seen for p_older_than_ms and hold no lease any more. Answers how many.
create or replace function cyclone_forget_workers(p_older_than_ms bigint) returns bigint
language plpgsql volatile
set search_path from current
set enable_seqscan = off
as $$
declare
  v_forgotten bigint;
begin
  delete from cyclone_workers w
   where w.last_seen_at < cyclone_now() - cyclone_ms(p_older_than_ms)
     and not exists (select 1 from cyclone_steps s where s.state = 'running' and s.lease_owner = w.id);
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end
$$;
