import { ERROR_KINDS, RUN_STATES, STEP_STATES } from '../../model/states.js';
import {
  anything,
  flag,
  idText,
  integer,
  listOf,
  mapOf,
  nullable,
  object,
  oneOf,
  text,
  time,
  type Schema,
} from '../schema.js';

export const DEAD_LETTER: Schema = object({
  run_id: idText,
  node: text,
  discarded_at: time,
  kind: text,
  queue: text,
  error: nullable(text),
  error_kind: oneOf(ERROR_KINDS),
  fingerprint: text,
  attempts: integer,
  max_attempts: integer,
  contained: flag,
  workflow: text,
  run_state: oneOf(RUN_STATES),
  root_run_id: { ...idText, description: 'The run that a retry reopens: this one, or the root of a child run.' },
  root_state: oneOf(RUN_STATES),
});

export const DEAD_LETTER_GROUP: Schema = object({
  kind: text,
  error_kind: oneOf(ERROR_KINDS),
  fingerprint: text,
  steps: integer,
  runs: integer,
  capped: { ...flag, description: 'The group has older dead letters that were not counted.' },
  oldest: time,
  newest: time,
  example: object({ run_id: idText, node: text, error: nullable(text) }),
});

export const KIND: Schema = object({
  kind: text,
  pending: integer,
  available: integer,
  running: integer,
  waiting: integer,
  paused: integer,
  oldest_available_age_ms: nullable(integer),
  live_workers: { ...integer, description: 'Workers that serve it now; 0 says why nothing happens.' },
});

export const WORKER: Schema = object({
  id: text,
  host: text,
  pid: integer,
  version: text,
  queues: { ...mapOf(integer), description: 'Queue → slots.' },
  kinds: listOf(text),
  started_at: time,
  last_seen_at: time,
  draining: flag,
  running: integer,
  status: oneOf(['idle', 'busy', 'draining', 'dead']),
  waiting_for_connection: {
    ...integer,
    description: 'Steps that have waited for a connection of its pool for longer than 5 s.',
  },
  problems: { ...listOf(text), description: 'What keeps it from claiming and completing steps, as it said itself.' },
});

export const COUNT: Schema = object({
  count: integer,
  capped: { ...flag, description: 'There are more: counting stopped.' },
});

const counts = (states: readonly string[]): Schema => object(Object.fromEntries(states.map((state) => [state, COUNT])));

const OPEN_WORK: Schema = object({
  name: text,
  pending: integer,
  available: integer,
  due: integer,
  running: integer,
  waiting: integer,
  paused: integer,
  oldest_available_age_ms: nullable(integer),
});

export const STATS: Schema = object({
  runs: counts(RUN_STATES),
  steps: counts(STEP_STATES),
  queues: listOf(OPEN_WORK),
  kinds: listOf(OPEN_WORK),
  oldest_available_age_ms: nullable(integer),
  workers: object({ live: integer, draining: integer, dead: integer }),
  health: object({
    stranded_runs: integer,
    expired_leases: integer,
    worker_problems: listOf(object({ worker: text, problems: listOf(text) })),
    unserved: listOf(object({ queue: text, kind: text, due: integer, oldest: nullable(time) })),
  }),
});

export const STRANDED_RUN: Schema = object({
  run_id: idText,
  workflow: text,
  stranded: { ...flag, description: 'false: its counters are wrong, but something in it is still active.' },
  problems: listOf(text),
});

export const FINDING: Schema = object({
  check: text,
  level: oneOf(['ok', 'info', 'warning', 'error']),
  message: text,
  advice: nullable(text),
});

export const AUDIT_ENTRY: Schema = object({
  id: idText,
  at: time,
  actor: text,
  action: text,
  run_id: nullable(idText),
  node: nullable(text),
  reason: nullable(text),
  affected: { ...integer, description: 'Steps of the run, or runs when there is no run_id.' },
  detail: nullable(mapOf(anything)),
});
