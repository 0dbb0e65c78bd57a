import type { Progress } from '../model/progress.js';
import type { Timer } from '../model/timer.js';
import type { EngineRow } from '../store/engine-row.js';
import type { Completion, Settlement } from '../store/engine-store.js';
import type { CompletionTransaction } from './completion/completion-transaction.js';
import type { RegisteredHandler } from './handler.js';

/**
 * Where an execution is:
 *   running     its handler is at work
 *   committing  the handler has returned, its completion transaction is being committed
 *   handed      a lane has its outcome and will tell the database
 *   over        settled, or no longer this worker's
 */
export type ExecutionPhase = 'running' | 'committing' | 'handed' | 'over';

/** One execution of a step: a lease, the handler that works under it, and what came of it. Kept small: there are many. */
export class Execution implements Completion {
  readonly runId: string;
  readonly node: string;
  readonly queue: string;
  readonly attempt: number;
  readonly generation: number;
  /** Whether the step is stored with a backoff, which wins over a backoff function of its handler (R9). */
  readonly hasBackoff: boolean;
  /** `runId:node`, also the key of the lease. */
  readonly key: string;
  phase: ExecutionPhase = 'running';
  /** Whether its handler has not returned yet. */
  handlerAtWork = true;
  /** Whether it still counts against the slots of its queue. */
  holdsSlot = true;
  /** JSON text of the output; null for an action. */
  output: string | null = null;
  /** How to settle it when it did not complete. */
  settlement: Settlement | undefined;
  /** How often the run was locked when a lane wanted to settle (C2). */
  misses = 0;
  /** What the answer under way says; undefined when it says nothing, which is good. */
  verdict: 'busy' | 'lost' | undefined;
  controller: AbortController | undefined;
  /** Why the signal is aborted, or would be if anybody had asked for it. */
  abortReason: unknown;
  aborted = false;
  timer: Timer | undefined;
  /** Reported by the handler since the last renewal. */
  progress: Progress | undefined;
  tx: CompletionTransaction | undefined;

  constructor(
    row: EngineRow,
    readonly handler: RegisteredHandler,
    /** On the monotonic clock: before the claim was sent, so that the lease cannot have begun earlier. */
    readonly claimedAt: number,
  ) {
    this.runId = row.runId;
    this.node = row.node;
    this.queue = row.queue;
    this.attempt = row.attempt;
    this.generation = row.generation;
    this.hasBackoff = row.info.backoff === true;
    this.key = `${row.runId}:${row.node}`;
  }

  get kind(): string {
    return this.handler.kind;
  }

  /** Aborts the handler's signal; one that nobody asked for is not made for it. */
  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.abortReason = reason;
    this.controller?.abort(reason);
  }

  stopTimer(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }
}
