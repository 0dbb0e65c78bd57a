-- The delay before the next execution after the given attempt failed (R15): exponential from baseMs by factor, at most maxMs,
-- with full jitter unless it is switched off. Null stands for the default: from 1 s, factor 2, at most 1 h.
create or replace function cyclone_backoff(p_backoff jsonb, p_attempt int) returns bigint
language sql volatile as $$
  select (d.delay * case when coalesce((p_backoff ->> 'jitter')::boolean, true) then random() else 1 end)::bigint
  from (
    select least(
      coalesce((p_backoff ->> 'maxMs')::float8, 3600000),
      coalesce((p_backoff ->> 'baseMs')::float8, 1000)
        * power(coalesce((p_backoff ->> 'factor')::float8, 2), least(p_attempt - 1, 62))
    ) as delay
  ) d
$$;
