import type { EntityManager } from 'typeorm';
import type { Duration } from '../model/duration.js';

/** The part of Nest's Logger that a handler uses. */
export interface StepLogger {
  log(message: unknown, ...rest: unknown[]): void;
  error(message: unknown, ...rest: unknown[]): void;
  warn(message: unknown, ...rest: unknown[]): void;
  debug(message: unknown, ...rest: unknown[]): void;
  verbose(message: unknown, ...rest: unknown[]): void;
}

/**
 * What a handler gets as its second parameter. A class and not an interface, because decorated signatures name it and their
 * metadata needs it at run time.
 */
export abstract class StepContext {
  abstract readonly runId: string;
  /** The name of the node in its run. */
  abstract readonly node: string;
  /** The registered name of the handler. */
  abstract readonly kind: string;
  /** From 1; a retry after a failure adds 1, a reclaim after a crash does not (R11). For logs and metrics only. */
  abstract readonly attempt: number;
  /** `runId:node`: the same for every attempt of the node. Give it to services that know idempotency keys. */
  abstract readonly idempotencyKey: string;
  /** Aborted when the step is cancelled, timed out, or no longer this worker's. Listeners may throw. */
  abstract readonly signal: AbortSignal;
  /** Logs with the ids of the step. */
  abstract readonly logger: StepLogger;

  /**
   * The transaction in which this step completes: what is written on it commits with the step, or not at all (R13). The first call
   * opens it, further calls give the same one. Never commit, roll back or release it (R14).
   */
  abstract completionTx(): Promise<EntityManager>;

  /**
   * Puts the step back for `delay`, without charging an attempt; the completion transaction rolls back (R15). It works by
   * throwing a SnoozeError: let it pass through your catch blocks.
   */
  abstract snooze(delay: Duration): never;

  /**
   * Says how far the step has come: shown as `progress` and `progress_note` in cyclone_v_steps, until the next execution of the step
   * begins at nothing. It travels with the renewal of the lease (every third of `leaseTtl`), the newest report only, so it may be called
   * as often as you like and costs no statement (R18). What is reported after the last renewal is never stored, and after the end of the
   * execution nothing happens. It is no payload: no codec sees the note.
   *
   * @param fraction 0 to 1
   * @param note at most 1,024 bytes; without one the last note stays, '' clears it
   * @throws InvalidOptionError for a fraction or a note that makes no sense; nothing is reported then
   */
  abstract progress(fraction: number, note?: string): void;
}
