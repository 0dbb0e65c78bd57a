import { describeReason, type Explanation } from '../../model/explanation.js';
import { ERROR_KINDS, NODE_TYPES, RUN_STATES, STEP_STATES } from '../../model/states.js';
import type { AttemptRecord } from '../../store/admin-store.js';
import type { StepRecord } from '../../store/run-store.js';
import { deepSnake, pick } from '../json.js';
import {
  anything,
  flag,
  idText,
  integer,
  listOf,
  mapOf,
  nullable,
  number,
  object,
  oneOf,
  text,
  time,
  type Schema,
} from '../schema.js';

const STEP_COLUMNS = {
  run_id: idText,
  node: text,
  node_type: oneOf(NODE_TYPES),
  kind: text,
  queue: text,
  priority: integer,
  state: oneOf(STEP_STATES),
  open_deps: integer,
  dependents: integer,
  on_dep_failure: text,
  attempt: integer,
  max_attempts: integer,
  backoff: nullable(mapOf(anything)),
  timeout_ms: nullable(integer),
  reclaims: integer,
  retention_ms: nullable(integer),
  scheduled_at: time,
  available_at: nullable(time),
  lease_owner: nullable(text),
  lease_expiry: nullable(time),
  lease_generation: integer,
  lease_expired: flag,
  started_at: nullable(time),
  finished_at: nullable(time),
  error: nullable(text),
  error_kind: nullable(oneOf(ERROR_KINDS)),
  error_fingerprint: nullable(text),
  contained: nullable(flag),
  wake_at: nullable(time),
  wait_ms: nullable(integer),
  parent_node: nullable(text),
  item_index: nullable(integer),
  concurrency: nullable(integer),
  progress: nullable(number),
  progress_note: nullable(text),
} satisfies Record<string, Schema>;

/** A step, the columns of cyclone_v_steps without payloads and stack. */
export const STEP: Schema = object(STEP_COLUMNS);

export const stepJson = (step: StepRecord): Record<string, unknown> => pick(step, Object.keys(STEP_COLUMNS));

const PAYLOAD: Schema = object({
  value: { description: 'Any JSON, as the redact hook of the application lets it be seen.' },
  bytes: { ...nullable(integer), description: 'Its length as JSON; null when it is withheld.' },
  omitted: {
    ...flag,
    description: 'The value is left out: longer than 64 KiB and full is not true, or the redact hook failed.',
  },
});

export const STEP_PAYLOAD: Schema = object({
  run_id: idText,
  node: text,
  input: PAYLOAD,
  output: PAYLOAD,
  panic_stack: nullable(text),
});

const ATTEMPT_COLUMNS = {
  run_id: idText,
  node: text,
  generation: integer,
  attempt: integer,
  worker: nullable(text),
  started_at: nullable(time),
  ended_at: time,
  outcome: text,
  error: nullable(text),
  error_kind: nullable(text),
} satisfies Record<string, Schema>;

/** An execution that did not complete its step. */
export const ATTEMPT: Schema = object(ATTEMPT_COLUMNS);

export const attemptJson = (attempt: AttemptRecord): Record<string, unknown> =>
  pick(attempt, Object.keys(ATTEMPT_COLUMNS));

/** Why a node is not running. */
export const EXPLANATION: Schema = object({
  run_id: idText,
  run_state: oneOf(RUN_STATES),
  node: text,
  workflow: text,
  node_type: oneOf(NODE_TYPES),
  kind: text,
  queue: text,
  priority: integer,
  state: oneOf(STEP_STATES),
  attempt: integer,
  max_attempts: integer,
  reclaims: integer,
  reasons: listOf({
    type: 'object',
    description: 'The most telling first. `text` is a sentence for people; what else there is depends on the code.',
    properties: { code: text, text },
    required: ['code', 'text'],
    additionalProperties: true,
  }),
});

export function explanationJson(explanation: Explanation): Record<string, unknown> {
  const { reasons = [], ...rest } = explanation;
  return {
    ...(deepSnake(rest) as Record<string, unknown>),
    reasons: reasons.map((reason) => ({ ...(deepSnake(reason) as object), text: describeReason(reason) })),
  };
}
