-- The views are public: dashboards, alerts and operators read them.
-- Each one touches only what its partial indexes hold, or one run, so they stay quick beside millions of finished steps.

create view cyclone_v_runs as
  select id, workflow, state, open_steps, uncontained_discards, result_node, once_key, parent_run_id, parent_node, tags,
         created_at, starts_at, deadline_at, deadline_ms, paused_at, failed_at, cancelled_at, finished_at, cancel_reason
  from cyclone_runs;

create view cyclone_v_steps as
  select run_id, node, node_type, kind, queue, priority, state, open_deps, dependents, on_dep_failure, input, output,
         attempt, max_attempts, backoff, timeout_ms, reclaims, retention_ms, scheduled_at, available_at,
         lease_owner, lease_expiry, lease_generation,
         coalesce(state = 'running' and lease_expiry < clock_timestamp(), false) as lease_expired,
         started_at, finished_at, error, error_kind, error_fingerprint, panic_stack, contained, wake_at, wait_ms,
         parent_node, item_index, concurrency,
         case when progress_generation = lease_generation then progress end as progress,
         case when progress_generation = lease_generation then progress_note end as progress_note
  from cyclone_steps;

create view cyclone_v_kinds as
  select kind,
         count(*) filter (where state = 'pending')                                as pending,
         count(*) filter (where state = 'available')                              as available,
         count(*) filter (where state = 'running')                                as running,
         count(*) filter (where state in ('waiting_timer', 'waiting_signal', 'waiting_child')) as waiting,
         count(*) filter (where state = 'paused')                                 as paused,
         max(clock_timestamp() - greatest(scheduled_at, available_at))
           filter (where state = 'available' and scheduled_at <= clock_timestamp()) as oldest_available_age
  from (
    select kind, state, scheduled_at, available_at from cyclone_steps where state = 'available'
    union all
    select kind, state, scheduled_at, available_at from cyclone_steps where state = 'running'
    union all
    select kind, state, scheduled_at, available_at from cyclone_steps
      where state in ('pending', 'waiting_timer', 'waiting_signal', 'waiting_child', 'paused')
  ) open_steps
  group by kind;

create view cyclone_v_dlq as
  select kind, error_kind, count(*) as steps, count(distinct run_id) as runs, min(finished_at) as oldest, max(finished_at) as newest
  from cyclone_steps
  where state = 'discarded'
  group by kind, error_kind;

insert into cyclone_schema_version (version, name, compatible_from) values (2, 'views', 1);
