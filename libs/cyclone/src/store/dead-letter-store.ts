import type { ErrorKind, RunState } from '../model/states.js';
import { quoteIdentifier } from './identifier.js';
import { checkedStatement, type Session, type Statement } from './session.js';

/** Dead letters of one group are counted up to this many; cyclone_v_dlq counts them all. */
const GROUP_COUNT_CAP = 500;

/** Which discarded steps are meant (R24). */
export interface ExhaustedFilter {
  readonly kind?: string;
  /** An error_kind; `retryable` includes `timeout`; none selects every discard. */
  readonly reason?: ErrorKind;
  readonly fingerprint?: string;
  /** Discarded no longer ago than so many milliseconds. */
  readonly sinceMs?: number;
}

/** A place in the list of dead letters; the next page begins behind it. */
export interface ExhaustedPosition {
  readonly discardedAt: string;
  readonly runId: string;
  readonly node: string;
}

/** A discarded step. */
export interface ExhaustedStep extends ExhaustedPosition {
  readonly kind: string;
  readonly queue: string;
  readonly error: string | null;
  readonly errorKind: ErrorKind;
  readonly fingerprint: string;
  readonly attempts: number;
  readonly maxAttempts: number;
  /** Whether its downstream nodes declared cancel_branch, so that it did not fail its run. */
  readonly contained: boolean;
  readonly workflow: string;
  readonly runState: RunState;
  /** The run that a retry has to reopen: this one, or the root of a child run (R31). */
  readonly rootRunId: string;
  readonly rootState: RunState;
}

/** The failed root runs behind one page of dead letters. */
export interface ExhaustedRoots {
  /** Each once, newest dead letter first. */
  readonly runIds: readonly string[];
  /** Where the next page begins; null when this was the last. */
  readonly next: ExhaustedPosition | null;
}

/** Dead letters of one cause. */
export interface DeadLetterGroup {
  readonly kind: string;
  readonly errorKind: ErrorKind;
  readonly fingerprint: string;
  readonly steps: number;
  readonly runs: number;
  /** Whether it has older dead letters that were not counted. */
  readonly capped: boolean;
  readonly oldest: string;
  readonly newest: string;
  readonly example: { readonly runId: string; readonly node: string; readonly error: string | null };
}

/** Reads dead letters. Changes nothing, holds no connection. */
export class DeadLetterStore {
  private readonly list: Statement;
  private readonly roots: Statement;
  private readonly grouped: Statement;

  constructor(schema: string) {
    const quoted = quoteIdentifier(schema);
    const iso = (column: string): string => `${quoted}.cyclone_iso(${column})`;
    const listed = `${quoted}.cyclone_list_exhausted($1, $2, $3, $4, $5, $6, $7, $8)`;
    this.list = checkedStatement(
      schema,
      'listExhausted',
      `select ${iso('discarded_at')}, run_id, node, kind, queue, error, error_kind, error_fingerprint, attempts, max_attempts, contained,
              workflow, run_state, root_run_id, root_state from ${listed}`,
    );
    this.roots = checkedStatement(
      schema,
      'exhaustedRoots',
      `select ${iso('discarded_at')}, run_id, node, root_run_id, root_state from ${listed}`,
    );
    this.grouped = checkedStatement(
      schema,
      'dlqGroups',
      `select kind, error_kind, error_fingerprint, steps, runs, capped, ${iso('oldest')}, ${iso('newest')}, example_run_id, example_node,
              example_error from ${quoted}.cyclone_dlq_groups($1, $2, $3)`,
    );
  }

  /** Discarded steps, newest first, at most `limit`, behind `before`. */
  async listExhausted(
    session: Session,
    filter: ExhaustedFilter,
    limit: number,
    before?: ExhaustedPosition,
  ): Promise<ExhaustedStep[]> {
    const rows = await session.rows(this.list, valuesOf(filter, limit, before));
    return rows.map((row) => ({
      discardedAt: row[0] ?? '',
      runId: row[1] ?? '',
      node: row[2] ?? '',
      kind: row[3] ?? '',
      queue: row[4] ?? '',
      error: row[5] ?? null,
      errorKind: row[6] as ErrorKind,
      fingerprint: row[7] ?? '',
      attempts: Number(row[8]),
      maxAttempts: Number(row[9]),
      contained: row[10] === 't',
      workflow: row[11] ?? '',
      runState: row[12] as RunState,
      rootRunId: row[13] ?? '',
      rootState: row[14] as RunState,
    }));
  }

  /**
   * The failed runs that a retry of these dead letters would reopen, for one page of `limit` steps. A run that is reopened between two
   * pages, and even fails again, does not come again: its new dead letters are newer than the position.
   */
  async exhaustedRoots(
    session: Session,
    filter: ExhaustedFilter,
    limit: number,
    before?: ExhaustedPosition,
  ): Promise<ExhaustedRoots> {
    const rows = await session.rows(this.roots, valuesOf(filter, limit, before));
    const failed = rows.filter((row) => row[4] === 'failed').map((row) => row[3] ?? '');
    const last = rows.length < limit ? undefined : rows.at(-1);
    return {
      runIds: [...new Set(failed)],
      next: last ? { discardedAt: last[0] ?? '', runId: last[1] ?? '', node: last[2] ?? '' } : null,
    };
  }

  /** Dead letters by kind, error kind and fingerprint, the largest group first. */
  async groups(session: Session, filter: Pick<ExhaustedFilter, 'kind' | 'sinceMs'>): Promise<DeadLetterGroup[]> {
    const rows = await session.rows(this.grouped, [filter.kind ?? null, filter.sinceMs ?? null, GROUP_COUNT_CAP]);
    return rows.map((row) => ({
      kind: row[0] ?? '',
      errorKind: row[1] as ErrorKind,
      fingerprint: row[2] ?? '',
      steps: Number(row[3]),
      runs: Number(row[4]),
      capped: row[5] === 't',
      oldest: row[6] ?? '',
      newest: row[7] ?? '',
      example: { runId: row[8] ?? '', node: row[9] ?? '', error: row[10] ?? null },
    }));
  }
}

function valuesOf(filter: ExhaustedFilter, limit: number, before: ExhaustedPosition | undefined): unknown[] {
  const { kind = null, reason = null, fingerprint = null, sinceMs = null } = filter;
  return [
    kind,
    reason,
    fingerprint,
    sinceMs,
    limit,
    before?.discardedAt ?? null,
    before?.runId ?? null,
    before?.node ?? null,
  ];
}
