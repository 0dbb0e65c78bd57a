-- The answer of an operation that changed nothing: a value, never an error, so that it cannot abort the caller's transaction (C6).
create or replace function cyclone_refuse(p_reason text, p_run bigint, p_node text, p_info jsonb) returns table (
  event text, run_id bigint, node text, kind text, queue text, attempt int, generation int,
  node_type text, max_attempts int, timeout_ms bigint, input jsonb, info jsonb
)
language sql immutable as $$
  select 'refused'::text, p_run, p_node, null::text, null::text, null::int, null::int, null::text, null::int, null::bigint, null::jsonb,
         coalesce(p_info, '{}') || jsonb_build_object('reason', p_reason)
$$;
