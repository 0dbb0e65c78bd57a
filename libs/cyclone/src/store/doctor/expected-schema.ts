// What the migrations make, so that the doctor notices what was changed by hand. A test compares it with a migrated database.

/** Tables and views with their columns and types, which have their names in pg_type: how others are printed depends on settings. */
export const EXPECTED_TABLES: Readonly<Record<string, string>> = {
  cyclone_attempts:
    'run_id int8, node text, generation int4, attempt int4, worker text, ' +
    'started_at timestamptz, ended_at timestamptz, outcome text, error text, ' +
    'error_kind text, panic_stack text',
  cyclone_audit:
    'id int8, at timestamptz, actor text, action text, run_id int8, node text, ' +
    'reason text, affected int8, detail jsonb',
  cyclone_deps: 'run_id int8, depends_on text, node text',
  cyclone_marks: 'name text, run_id int8, at timestamptz',
  cyclone_runs:
    'id int8, workflow text, state text, open_steps int4, uncontained_discards int4, ' +
    'result_node text, once_key text, once_hash text, once_token uuid, parent_run_id int8, parent_node text, ' +
    'tags jsonb, created_at timestamptz, starts_at timestamptz, ' +
    'deadline_ms int8, deadline_at timestamptz, deadline_left_ms int8, ' +
    'paused_at timestamptz, failed_at timestamptz, ' +
    'cancelled_at timestamptz, finished_at timestamptz, cancel_reason text',
  cyclone_schema_version: 'version int4, name text, compatible_from int4, functions text, applied_at timestamptz',
  cyclone_steps:
    'run_id int8, node text, node_type text, kind text, queue text, priority int4, state text, ' +
    'open_deps int4, dependents int4, on_dep_failure text, input jsonb, input_spec jsonb, ' +
    'output jsonb, attempt int4, max_attempts int4, backoff jsonb, timeout_ms int8, ' +
    'reclaims int4, retention_ms int8, scheduled_at timestamptz, ' +
    'available_at timestamptz, lease_owner text, lease_expiry timestamptz, ' +
    'lease_generation int4, started_at timestamptz, ' +
    'finished_at timestamptz, error text, error_kind text, error_fingerprint text, ' +
    'panic_stack text, contained bool, wake_at timestamptz, wait_ms int8, ' +
    'wait_left_ms int8, parent_node text, item_index int4, concurrency int4, progress float4, ' +
    'progress_note text, progress_generation int4',
  cyclone_stranded_runs: 'run_id int8, found_at timestamptz, checked_at timestamptz',
  cyclone_v_dlq: 'kind text, error_kind text, steps int8, runs int8, oldest timestamptz, newest timestamptz',
  cyclone_v_kinds:
    'kind text, pending int8, available int8, running int8, waiting int8, paused int8, ' +
    'oldest_available_age interval',
  cyclone_v_runs:
    'id int8, workflow text, state text, open_steps int4, uncontained_discards int4, ' +
    'result_node text, once_key text, parent_run_id int8, parent_node text, tags jsonb, ' +
    'created_at timestamptz, starts_at timestamptz, ' +
    'deadline_at timestamptz, deadline_ms int8, paused_at timestamptz, ' +
    'failed_at timestamptz, cancelled_at timestamptz, ' +
    'finished_at timestamptz, cancel_reason text',
  cyclone_v_steps:
    'run_id int8, node text, node_type text, kind text, queue text, priority int4, state text, ' +
    'open_deps int4, dependents int4, on_dep_failure text, input jsonb, output jsonb, ' +
    'attempt int4, max_attempts int4, backoff jsonb, timeout_ms int8, reclaims int4, ' +
    'retention_ms int8, scheduled_at timestamptz, ' +
    'available_at timestamptz, lease_owner text, lease_expiry timestamptz, ' +
    'lease_generation int4, lease_expired bool, started_at timestamptz, ' +
    'finished_at timestamptz, error text, error_kind text, error_fingerprint text, ' +
    'panic_stack text, contained bool, wake_at timestamptz, wait_ms int8, ' +
    'parent_node text, item_index int4, concurrency int4, progress float4, progress_note text',
  cyclone_workers:
    'id text, host text, pid int4, version text, queues jsonb, kinds _text, ' +
    'started_at timestamptz, last_seen_at timestamptz, draining bool, waiting jsonb, problems _text',
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
