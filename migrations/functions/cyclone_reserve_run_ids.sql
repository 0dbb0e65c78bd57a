-- Ids for runs that are not made yet, in order.
create or replace function cyclone_reserve_run_ids(p_count int) returns setof bigint
language sql volatile
set search_path from current
as $$
  select nextval('cyclone_runs_id_seq') from generate_series(1, p_count)
$$;
