import { REPORTED_WAIT_MS } from '../store/connection-wait.js';
import { monotonicMs } from './clock.js';
import type { Lane } from './lanes/lane.js';
import type { LeaseBook } from './leases/lease-book.js';
import type { LeaseKeeper } from './leases/lease-keeper.js';
import type { Tick } from './tick.js';

/** What the judgement of a worker rests on. */
export interface Vitals {
  readonly lanes: readonly Lane[];
  readonly keeper: LeaseKeeper;
  readonly tick: Tick;
  readonly book: LeaseBook;
  /** Handlers that ignore their signal. */
  readonly ignoring: number;
  readonly slots: number;
  readonly leaseTtlMs: number;
  readonly pollIntervalMs: number;
}

/** What keeps a worker from claiming and completing steps now, each a sentence that says what to do. Empty: nothing. */
export function problemsOf({
  lanes,
  keeper,
  tick,
  book,
  ignoring,
  slots,
  leaseTtlMs,
  pollIntervalMs,
}: Vitals): string[] {
  const problems = new Set<string>();
  for (const { trouble } of lanes) if (trouble) problems.add(trouble);
  const now = performance.now();
  for (const { callSentAt } of lanes) {
    if (callSentAt === undefined || now - callSentAt < REPORTED_WAIT_MS) continue;
    problems.add(
      `A call has waited ${seconds(now - callSentAt)} for an answer of the database. Look whether the server is overloaded or a lock is held.`,
    );
  }
  if (problems.size === 0 && lanes.every(({ connectedAt }) => connectedAt === undefined)) {
    problems.add('The worker has no connection to the database yet.');
  }
  const { state } = keeper;
  if (state.by === 'none') problems.add(state.reason);
  let oldest = Infinity;
  for (const { claimedAt } of book.values()) oldest = Math.min(oldest, Math.max(claimedAt, keeper.renewedAt));
  const unrenewedMs = monotonicMs() - oldest;
  if (unrenewedMs > Math.max(leaseTtlMs, 3 * pollIntervalMs)) {
    problems.add(
      `Leases of running steps have not been renewed for ${seconds(unrenewedMs)}: others will take the steps. Look at the log of the worker.`,
    );
  }
  if (
    tick.succeededAt === undefined
      ? problems.size === 0
      : now - tick.succeededAt > Math.max(leaseTtlMs, 3 * pollIntervalMs)
  ) {
    const since =
      tick.succeededAt === undefined
        ? 'has not succeeded yet'
        : `has not succeeded for ${seconds(now - tick.succeededAt)}`;
    problems.add(
      `The housekeeping ${since}: nothing is taken back, timed out or promoted by it. Look at the log of the worker.`,
    );
  }
  if (ignoring >= slots) {
    problems.add(
      `${ignoring} handlers ignore ctx.signal after their step timed out or was lost, as many as there are slots. Make them heed it.`,
    );
  }
  return [...problems];
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1_000)} s`;
}
