-- The first run that was created at p_at or later, found by bisection: ids and creation times grow together, but for the moments that a
-- submit needs. There is no index on created_at, because every submit would pay for it; callers leave an hour of slack.
create or replace function cyclone_run_id_at(p_at timestamptz) returns bigint
language plpgsql stable
set search_path from current
set enable_seqscan = off
as $$
declare
  v_low    bigint := (select r.id from cyclone_runs r order by r.id limit 1);
  v_high   bigint := (select r.id from cyclone_runs r order by r.id desc limit 1) + 1;
  v_middle bigint;
  v_run    record;
begin
  while v_low < v_high loop
    v_middle := v_low + (v_high - v_low) / 2;
    select r.id, r.created_at into v_run from cyclone_runs r where r.id >= v_middle order by r.id limit 1;
    if not found or v_run.created_at >= p_at then
      v_high := v_middle;
    else
      v_low := v_run.id + 1;
    end if;
  end loop;
  return v_low;
end
$$;
