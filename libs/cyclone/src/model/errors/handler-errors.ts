import { parseDuration, type Duration } from '../duration.js';
import { CycloneError, identify } from './cyclone-error.js';

/** Thrown by a handler: no retry can help, discard the step at once (R15). */
export class PermanentError extends CycloneError {
  static override readonly code = 'CYCLONE_PERMANENT';
  static {
    identify(this, 'PermanentError');
  }
}

/** Thrown by a handler: a retryable failure that says itself when to try again (R15). It costs an attempt like any failure. */
export class RetryAfterError extends CycloneError {
  static override readonly code = 'CYCLONE_RETRY_AFTER';
  static {
    identify(this, 'RetryAfterError');
  }
  /** Milliseconds until the next attempt, in place of the step's backoff. */
  readonly delayMs: number;
  constructor(delay: Duration, message = 'The handler asked for a later retry.', options?: ErrorOptions) {
    super(message, options);
    this.delayMs = parseDuration(delay, 'delay of RetryAfterError');
  }
}

/** What `ctx.snooze(delay)` throws: the step goes back without a charged attempt (R15). Let it pass through your catch blocks. */
export class SnoozeError extends CycloneError {
  static override readonly code = 'CYCLONE_SNOOZE';
  static {
    identify(this, 'SnoozeError');
  }
  /** Milliseconds until the step is due again. */
  readonly delayMs: number;
  constructor(delay: Duration) {
    super('The handler snoozed its step. ctx.snooze() works by throwing: rethrow this in a catch block.');
    this.delayMs = parseDuration(delay, 'delay of ctx.snooze()');
  }
}

const TRANSACTION_PROBLEMS = {
  committed: 'committed the completion transaction by itself',
  rolled_back: 'rolled the completion transaction back by itself',
  released: 'released the connection of the completion transaction',
  nested: 'left a nested transaction of the completion transaction open',
  aborted: 'left the completion transaction aborted: a statement on it failed and the error was swallowed',
  closed: 'used the completion transaction after it had returned',
  session: 'changed the session of the completion transaction for longer than the transaction lasts',
} as const;

/** How a handler can break the transaction that completes its step. */
export type TransactionProblem = keyof typeof TRANSACTION_PROBLEMS;

const END_IT_NEVER =
  'Cyclone commits it with the step when the handler returns: ' +
  'await every statement, let its errors out of the handler, and never end it yourself.';
const SET_LOCAL =
  'The connection goes back to the pool, and whoever has it next would inherit that, so the statement was not sent. Write SET LOCAL, ' +
  'which ends with the transaction (for a RESET: SET LOCAL … TO DEFAULT), or set_config(…, …, true). ' +
  'What has to outlive the transaction needs a connection of your own.';

/** A handler broke the transaction that completes its step, so the attempt failed (R14). */
export class CompletionTransactionError extends CycloneError {
  static override readonly code = 'CYCLONE_COMPLETION_TRANSACTION';
  static {
    identify(this, 'CompletionTransactionError');
  }
  constructor(
    readonly problem: TransactionProblem,
    options?: ErrorOptions,
  ) {
    super(`The handler ${TRANSACTION_PROBLEMS[problem]}. ${problem === 'session' ? SET_LOCAL : END_IT_NEVER}`, options);
  }
}

/** The step is no longer this worker's: cancelled, timed out, or reclaimed (R12). Its late result is dropped. */
export class LeaseLostError extends CycloneError {
  static override readonly code = 'CYCLONE_LEASE_LOST';
  static {
    identify(this, 'LeaseLostError');
  }
  constructor(
    readonly runId: string,
    readonly node: string,
    options?: ErrorOptions,
  ) {
    super(
      `The lease on node "${node}" of run ${runId} is lost: the step was cancelled, timed out or given to another worker. ` +
        `Stop working on it; what this attempt did on the completion transaction is rolled back.`,
      options,
    );
  }
}
