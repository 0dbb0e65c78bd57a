-- Whether a run has a node that is not terminal. Exact, for checks and repair; the hot path keeps a counter.
create or replace function run_has_active_steps(p_run bigint) returns boolean
language plpgsql stable
set search_path from current
set enable_seqscan = off
as $$
begin
  return exists (select 1 from cyclone_steps s where s.run_id = p_run and s.state not in ('completed', 'discarded', 'cancelled'));
end
$$;
