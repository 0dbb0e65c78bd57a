-- Begins a round of housekeeping that all processes share, once in p_every_ms whatever their number: true for the one that has begun it.
-- A mark that lies further ahead than one round was made by a clock that has been set back since.
create or replace function cyclone_begin_round(p_name text, p_every_ms bigint) returns boolean
language plpgsql volatile
set search_path from current
set enable_seqscan = off
as $$
declare
  v_now bigint := extract(epoch from cyclone_now()) * 1000;
begin
  insert into cyclone_marks as m (name, value) values (p_name, v_now)
  on conflict (name) do update set value = excluded.value
   where m.value <= excluded.value - p_every_ms or m.value > excluded.value + p_every_ms;
  return found;
end
$$;
