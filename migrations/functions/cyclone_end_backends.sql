-- Ends the sessions whose completion transactions belong to leases that were taken away (C3): otherwise a stopped worker would keep
-- its row locks for ever. Answers how many it ended, or null when this role may not: a finding for the operator, not an error.
create or replace function cyclone_end_backends(p_marks text[]) returns int
language plpgsql volatile
as $$
begin
  return (select count(*) filter (where pg_terminate_backend(a.pid))
            from pg_stat_activity a
           where a.application_name = any(p_marks) and a.pid <> pg_backend_pid() and a.datname = current_database());
exception when insufficient_privilege then
  return null;
end
$$;
