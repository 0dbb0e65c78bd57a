-- Milliseconds as an interval. Durations travel and are stored as whole milliseconds.
create or replace function cyclone_ms(p_ms bigint) returns interval
language sql immutable parallel safe as $$ select p_ms * interval '1 millisecond' $$;
