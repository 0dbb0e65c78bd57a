-- A time as text in UTC with its microseconds: what leaves the database inside JSON loses nothing on the way.
create or replace function cyclone_iso(p_at timestamptz) returns text
language sql stable parallel safe as $$ select to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') $$;
