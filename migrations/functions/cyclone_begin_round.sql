-- Begins a round of housekeeping that all processes share, once in p_every_ms whatever their number: true for the one that has begun it.
-- A mark that lies further ahead than one round was made by a clock that has been set back since.
create or replace function cyclone_begin_round(p_name text, p_every_ms bigint) returns boolean
language plpgsql volatile
set search_path from current
set enable_seqscan = off
as $$
begin
  insert into cyclone_marks as m (name, at) values (p_name, cyclone_now())
  on conflict (name) do update set at = excluded.at
   where m.at <= excluded.at - cyclone_ms(p_every_ms) or m.at > excluded.at + cyclone_ms(p_every_ms);
  return found;
end
$$;
