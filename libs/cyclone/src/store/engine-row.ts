/**
 * One line of an engine function's answer. All functions that change a state answer in this shape, so that what happened is
 * read in one way everywhere: `event` names it, the rest says to which step or run.
 */
export interface EngineRow {
  readonly event: string;
  readonly runId: string;
  /** '' in a row about a run. */
  readonly node: string;
  /** The kind of the step; in a row about a run the workflow. */
  readonly kind: string;
  readonly queue: string;
  readonly attempt: number;
  readonly generation: number;
  readonly nodeType: string;
  readonly maxAttempts: number;
  /** null: no limit. */
  readonly timeoutMs: number | null;
  /** JSON text; null where the row has no input. */
  readonly input: string | null;
  readonly info: RowInfo;
}

/** What a row says beyond its columns; each event has its own few. */
export interface RowInfo {
  readonly state?: string;
  readonly nodeState?: string | null;
  readonly was?: string;
  readonly error?: string;
  readonly errorKind?: string;
  readonly contained?: boolean | null;
  readonly reason?: string;
  readonly backoff?: boolean;
  /** Of a claimed step: it became available in the same statement. */
  readonly promoted?: boolean;
  readonly delayMs?: number;
  readonly sqlstate?: string;
  readonly rootRunId?: string;
}

/** The columns of an engine function's answer, in the order that `toEngineRow` reads. */
export const ENGINE_COLUMNS =
  'event, run_id, node, kind, queue, attempt, generation, node_type, max_attempts, timeout_ms, input, info';

const NO_INFO: RowInfo = Object.freeze({});
/** What a flush says of each step that it promotes and claims at once: not worth a parse for each row. */
const PROMOTED_TEXT = '{"promoted": true}';
const PROMOTED: RowInfo = Object.freeze({ promoted: true });

/** Maps a row of texts, as the wire brings it (C17). */
export function toEngineRow(texts: readonly (string | null)[]): EngineRow {
  return {
    event: texts[0] ?? '',
    runId: texts[1] ?? '',
    node: texts[2] ?? '',
    kind: texts[3] ?? '',
    queue: texts[4] ?? '',
    attempt: Number(texts[5] ?? 0),
    generation: Number(texts[6] ?? 0),
    nodeType: texts[7] ?? '',
    maxAttempts: Number(texts[8] ?? 0),
    timeoutMs: texts[9] == null ? null : Number(texts[9]),
    input: texts[10] ?? null,
    info: toInfo(texts[11]),
  };
}

function toInfo(text: string | null | undefined): RowInfo {
  if (text == null) return NO_INFO;
  return text === PROMOTED_TEXT ? PROMOTED : (JSON.parse(text) as RowInfo);
}
