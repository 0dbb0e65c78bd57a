-- What operators need: who did what, where the walks over all runs stand, and how far a running step says that it has come.

-- The only lock on what workers use, taken through the view first as its readers do: this migration cannot deadlock with a running
-- system. The columns are null until a handler reports something, and no index holds them.
lock table cyclone_v_steps in access exclusive mode;

alter table cyclone_steps
  add column progress            real,               -- 0 to 1, as the handler said it last
  add column progress_note       text,
  add column progress_generation int;                -- of the lease that said so: another execution begins at nothing

create or replace view cyclone_v_steps as
  select run_id, node, node_type, kind, queue, priority, state, open_deps, dependents, on_dep_failure, input, output,
         attempt, max_attempts, backoff, timeout_ms, reclaims, retention_ms, scheduled_at, available_at,
         lease_owner, lease_expiry, lease_generation,
         coalesce(state = 'running' and lease_expiry < clock_timestamp(), false) as lease_expired,
         started_at, finished_at, error, error_kind, error_fingerprint, panic_stack, contained, wake_at, wait_ms,
         parent_node, item_index, concurrency,
         case when progress_generation = lease_generation then progress end as progress,
         case when progress_generation = lease_generation then progress_note end as progress_note
  from cyclone_steps;

-- Dead letters by cause. Only a discard pays for it, and its columns are null on the happy path.
create index cyclone_steps_dead_letters on cyclone_steps (kind, error_kind, error_fingerprint, finished_at, run_id) where state = 'discarded';

-- What operators did: written in the transaction that did it.
create table cyclone_audit (
  id       bigint generated always as identity primary key,
  at       timestamptz not null,
  actor    text not null,
  action   text collate "C" not null,
  run_id   bigint,                                   -- null: the action was not about one run
  node     text collate "C",
  reason   text,
  affected bigint not null,                          -- steps of the run, or runs when run_id is null
  detail   jsonb
);
create index cyclone_audit_run on cyclone_audit (run_id, id) where run_id is not null;

-- Where the check for stranded runs stands, and when rounds of housekeeping began. No index on runs may contain their state, so what
-- looks at all of them goes round in small pieces. The row is also the lock of its walk.
create table cyclone_marks (
  name  text collate "C" primary key,
  value bigint not null                              -- the last run id that was looked at; or when the round began, in epoch milliseconds
);
insert into cyclone_marks (name, value) values ('stranded', 0);

-- Stranded runs that the check has come across, so that its count is right between two of its rounds.
create table cyclone_stranded_runs (
  run_id   bigint primary key,
  found_at timestamptz not null
);

insert into cyclone_schema_version (version, name, compatible_from) values (3, 'operations', 1);
