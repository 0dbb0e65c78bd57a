// What the migrations make, so that the doctor notices what was changed by hand. A test compares it with a migrated database.

/** Tables and views with their columns and types. */
export const EXPECTED_TABLES: Readonly<Record<string, string>> = {
  cyclone_attempts:
    'run_id bigint, node text, generation integer, attempt integer, worker text, ' +
    'started_at timestamp with time zone, ended_at timestamp with time zone, outcome text, error text, ' +
    'error_kind text, panic_stack text',
  cyclone_audit:
    'id bigint, at timestamp with time zone, actor text, action text, run_id bigint, node text, ' +
    'reason text, affected bigint, detail jsonb',
  cyclone_deps: 'run_id bigint, depends_on text, node text',
  cyclone_marks: 'name text, run_id bigint, at timestamp with time zone',
  cyclone_runs:
    'id bigint, workflow text, state text, open_steps integer, uncontained_discards integer, ' +
    'result_node text, once_key text, once_hash text, once_token uuid, parent_run_id bigint, parent_node text, ' +
    'tags jsonb, created_at timestamp with time zone, starts_at timestamp with time zone, ' +
    'deadline_ms bigint, deadline_at timestamp with time zone, deadline_left_ms bigint, ' +
    'paused_at timestamp with time zone, failed_at timestamp with time zone, ' +
    'cancelled_at timestamp with time zone, finished_at timestamp with time zone, cancel_reason text',
  cyclone_schema_version:
    'version integer, name text, compatible_from integer, functions text, applied_at timestamp with time zone',
  cyclone_steps:
    'run_id bigint, node text, node_type text, kind text, queue text, priority integer, state text, ' +
    'open_deps integer, dependents integer, on_dep_failure text, input jsonb, input_spec jsonb, ' +
    'output jsonb, attempt integer, max_attempts integer, backoff jsonb, timeout_ms bigint, ' +
    'reclaims integer, retention_ms bigint, scheduled_at timestamp with time zone, ' +
    'available_at timestamp with time zone, lease_owner text, lease_expiry timestamp with time zone, ' +
    'lease_generation integer, started_at timestamp with time zone, ' +
    'finished_at timestamp with time zone, error text, error_kind text, error_fingerprint text, ' +
    'panic_stack text, contained boolean, wake_at timestamp with time zone, wait_ms bigint, ' +
    'wait_left_ms bigint, parent_node text, item_index integer, concurrency integer, progress real, ' +
    'progress_note text, progress_generation integer',
  cyclone_stranded_runs: 'run_id bigint, found_at timestamp with time zone, checked_at timestamp with time zone',
  cyclone_v_dlq:
    'kind text, error_kind text, steps bigint, runs bigint, oldest timestamp with time zone, ' +
    'newest timestamp with time zone',
  cyclone_v_kinds:
    'kind text, pending bigint, available bigint, running bigint, waiting bigint, paused bigint, ' +
    'oldest_available_age interval',
  cyclone_v_runs:
    'id bigint, workflow text, state text, open_steps integer, uncontained_discards integer, ' +
    'result_node text, once_key text, parent_run_id bigint, parent_node text, tags jsonb, ' +
    'created_at timestamp with time zone, starts_at timestamp with time zone, ' +
    'deadline_at timestamp with time zone, deadline_ms bigint, paused_at timestamp with time zone, ' +
    'failed_at timestamp with time zone, cancelled_at timestamp with time zone, ' +
    'finished_at timestamp with time zone, cancel_reason text',
  cyclone_v_steps:
    'run_id bigint, node text, node_type text, kind text, queue text, priority integer, state text, ' +
    'open_deps integer, dependents integer, on_dep_failure text, input jsonb, output jsonb, ' +
    'attempt integer, max_attempts integer, backoff jsonb, timeout_ms bigint, reclaims integer, ' +
    'retention_ms bigint, scheduled_at timestamp with time zone, ' +
    'available_at timestamp with time zone, lease_owner text, lease_expiry timestamp with time zone, ' +
    'lease_generation integer, lease_expired boolean, started_at timestamp with time zone, ' +
    'finished_at timestamp with time zone, error text, error_kind text, error_fingerprint text, ' +
    'panic_stack text, contained boolean, wake_at timestamp with time zone, wait_ms bigint, ' +
    'parent_node text, item_index integer, concurrency integer, progress real, progress_note text',
  cyclone_workers:
    'id text, host text, pid integer, version text, queues jsonb, kinds text[], ' +
    'started_at timestamp with time zone, last_seen_at timestamp with time zone, draining boolean, waiting jsonb',
};

export const EXPECTED_INDEXES: readonly string[] = [
  'cyclone_attempts_pkey',
  'cyclone_audit_pkey',
  'cyclone_audit_run',
  'cyclone_deps_pkey',
  'cyclone_marks_pkey',
  'cyclone_runs_cancelled',
  'cyclone_runs_deadline',
  'cyclone_runs_failed',
  'cyclone_runs_once',
  'cyclone_runs_parent',
  'cyclone_runs_paused',
  'cyclone_runs_pkey',
  'cyclone_runs_tags',
  'cyclone_schema_version_pkey',
  'cyclone_steps_claim',
  'cyclone_steps_dead_letters',
  'cyclone_steps_discarded',
  'cyclone_steps_parked',
  'cyclone_steps_pkey',
  'cyclone_steps_running',
  'cyclone_stranded_runs_pkey',
  'cyclone_workers_pkey',
];
