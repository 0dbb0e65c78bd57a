-- The one clock of the engine (R19): every function reads it once. Tests replace it to move time.
create or replace function cyclone_now() returns timestamptz
language sql volatile as $$ select clock_timestamp() $$;
