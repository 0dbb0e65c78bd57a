import type { EntityManager, QueryRunner } from 'typeorm';
import type { Duration } from '../model/duration.js';
import type { TerminalRunState } from '../model/states.js';

/** When a run starts: at once, after a delay, or at a time. Timers and the deadline count from there (R9). */
export type StartOptions =
  | { readonly delay?: Duration; readonly startAt?: never }
  | { readonly delay?: never; readonly startAt?: Date | string };

/** Options of a submit. */
export type SubmitOptions = StartOptions & {
  /**
   * The caller's transaction: the run exists if and only if it commits (R6). It must have been begun.
   * @default a transaction of its own
   */
  readonly tx?: EntityManager | QueryRunner;
  /** The queue of nodes that name none themselves. */
  readonly queue?: string;
  /** Lower numbers first; for nodes that name none themselves. */
  readonly priority?: number;
  /** How long the run may take from its start until it fails (R27). @default the workflow's */
  readonly runDeadline?: Duration;
  /** Searchable labels of the run. */
  readonly tags?: Readonly<Record<string, string>>;
};

/** How long to wait for the end of a run. */
export interface WaitOptions {
  /** @default no limit */
  readonly timeout?: Duration;
  /** Ends the waiting early, not the run. */
  readonly signal?: AbortSignal;
}

/** A submitted run, as far as its submitter needs it. */
export interface SubmittedRun<Out> {
  /** Decimal digits: a bigint of the database. */
  readonly id: string;
  /** Whether this call made the run; false when `submitOnce` found it (R7). */
  readonly created: boolean;
  /**
   * Waits for the end of the run.
   * @throws WaitTimeoutError, RunNotFoundError
   */
  wait(options?: WaitOptions): Promise<TerminalRunState>;
  /**
   * Waits for the result of the run.
   * @throws RunFailedError, RunCancelledError, ResultUnavailableError, WaitTimeoutError, RunNotFoundError
   */
  result(options?: WaitOptions): Promise<Out>;
}
