-- Ends the sessions whose completion transactions belong to executions that are on record as over (C3). Whoever takes a lease away ends
-- its session right after its own commit; this is for those who died in between, else the rows of a stopped worker stay locked for ever.
-- What ended in the last second is left to them, and to the transaction that is just committing.
create or replace function cyclone_end_orphans(p_now timestamptz) returns void
language plpgsql volatile
set search_path from current
set enable_seqscan = off
as $$
begin
  perform pg_terminate_backend(m.pid)
     from (select a.pid, split_part(a.application_name, ':', 2)::bigint as run_id, split_part(a.application_name, ':', 3) as hash,
                  split_part(a.application_name, ':', 4)::int as generation
             from pg_stat_activity a
            where a.datname = current_database() and a.pid <> pg_backend_pid()
              -- As one expression, so that no name of another kind is ever cast.
              and case when a.application_name ~ '^cyclone:[0-9]{1,18}:[0-9a-f]{16}:[0-9]{1,9}$' then true else false end
           offset 0) m
     join cyclone_attempts t on t.run_id = m.run_id and t.generation = m.generation
    where t.ended_at < p_now - interval '1 second' and left(encode(sha256(
            convert_to(current_schema(), 'UTF8') || decode('00', 'hex') || convert_to(t.node, 'UTF8')), 'hex'), 16) = m.hash;
exception when insufficient_privilege then
  null;                                              -- cyclone_end_backends tells the operator
end
$$;
