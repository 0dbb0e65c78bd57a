import { RUN_STATES } from '../../model/states.js';
import type { RunRecord } from '../../store/run-store.js';
import { snake } from '../json.js';
import { idText, integer, listOf, mapOf, nullable, object, oneOf, ref, text, time, type Schema } from '../schema.js';

/** A run, every column of cyclone_v_runs that an operator needs. */
export const RUN: Schema = object({
  id: idText,
  workflow: text,
  state: oneOf(RUN_STATES),
  open_steps: integer,
  result_node: nullable(text),
  once_key: nullable(text),
  parent_run_id: nullable(idText),
  parent_node: nullable(text),
  tags: nullable(mapOf(text)),
  created_at: time,
  starts_at: time,
  deadline_at: nullable(time),
  paused_at: nullable(time),
  failed_at: nullable(time),
  cancelled_at: nullable(time),
  finished_at: nullable(time),
  cancel_reason: nullable(text),
});

export const FAILURE: Schema = object({
  node: nullable(text),
  kind: nullable(text),
  error: nullable(text),
  error_kind: nullable(text),
});

export const runJson = (run: RunRecord): Record<string, unknown> => snake(run);

/** A page: its rows, and the cursors of the pages beside it. */
export const pageOf = (name: string): Schema =>
  object({
    data: listOf(ref(name)),
    next_cursor: { ...nullable(text), description: 'null on the last page. A page may be short although more follow.' },
  });

export const RUN_PAGE: Schema = object({
  data: listOf(ref('Run')),
  next_cursor: { ...nullable(text), description: 'null on the last page. A page may be short although more follow.' },
  previous_cursor: nullable(text),
});
