import { CycloneError, identify } from './cyclone-error.js';

/** Cancelling a run that has already ended; nothing was changed. */
export class AlreadyTerminalError extends CycloneError {
  static override readonly code = 'CYCLONE_ALREADY_TERMINAL';
  static {
    identify(this, 'AlreadyTerminalError');
  }
  constructor(
    readonly runId: string,
    readonly state: string,
  ) {
    super(
      `Run ${runId} is already ${state}, so there is nothing left to change. ` +
        `Treat this as done, or reopen a failed run with OperatorClient.retry or retryAll.`,
    );
  }
}

/** Resuming a run that is not paused (R24). */
export class NotPausedError extends CycloneError {
  static override readonly code = 'CYCLONE_NOT_PAUSED';
  static {
    identify(this, 'NotPausedError');
  }
  constructor(
    readonly runId: string,
    readonly state: string,
  ) {
    super(
      `Run ${runId} is ${state}, not paused, so it cannot be resumed. ` +
        `A step that was running at the pause may have ended the run; look at its state with RunHandle.info().`,
    );
  }
}

/** Retrying a run that another run owns, or one whose child can never give its node a result (R31). */
export class ChildNotRetryableError extends CycloneError {
  static override readonly code = 'CYCLONE_CHILD_NOT_RETRYABLE';
  static {
    identify(this, 'ChildNotRetryableError');
  }
  /** The run at the top of the tree, which is the one to retry; absent when no retry can help. */
  readonly rootRunId?: string;
  /** The child node that can never have a result. */
  readonly node?: string;
  constructor(
    readonly runId: string,
    why: { readonly rootRunId: string } | { readonly node: string },
  ) {
    super(
      'rootRunId' in why
        ? `Run ${runId} is a child run. Retry its root run ${why.rootRunId} instead; that reuses this child run.`
        : `The child run of node "${why.node}" in run ${runId} completed without a result, so a retry would end the same way. ` +
            `Nothing was changed. Let the child workflow return a result node and submit a new run.`,
    );
    if ('rootRunId' in why) this.rootRunId = why.rootRunId;
    else this.node = why.node;
  }
}

/** No run has this id: it never existed, was rolled back with its transaction, or was purged. */
export class RunNotFoundError extends CycloneError {
  static override readonly code = 'CYCLONE_RUN_NOT_FOUND';
  static {
    identify(this, 'RunNotFoundError');
  }
  constructor(readonly runId: string) {
    super(
      `There is no run ${runId}. Check the id and the schema; a run also disappears when retention purges it ` +
        `and never appears when the transaction that submitted it rolls back.`,
    );
  }
}

/** The run exists but has no node of this name. */
export class NodeNotFoundError extends CycloneError {
  static override readonly code = 'CYCLONE_NODE_NOT_FOUND';
  static {
    identify(this, 'NodeNotFoundError');
  }
  constructor(
    readonly runId: string,
    readonly node: string,
  ) {
    super(`Run ${runId} has no node "${node}". RunHandle.steps() or \`cyclone steps ${runId}\` lists its nodes.`);
  }
}

/** A retry needs a failed run and a discarded target (R25); nothing was changed. */
export class NotRetryableError extends CycloneError {
  static override readonly code = 'CYCLONE_NOT_RETRYABLE';
  static {
    identify(this, 'NotRetryableError');
  }
  constructor(
    readonly runId: string,
    /** What stands in the way, as a clause: `the run is completed`, `node "charge" is cancelled`. */
    readonly reason: string,
    readonly node?: string,
  ) {
    super(
      `Run ${runId} cannot be retried: ${reason}. A retry needs a failed run and a discarded node; ` +
        `\`cyclone steps ${runId}\` shows the states.`,
    );
  }
}

/** `result()` of a run that failed; carries the discard that failed it. */
export class RunFailedError extends CycloneError {
  static override readonly code = 'CYCLONE_RUN_FAILED';
  static {
    identify(this, 'RunFailedError');
  }
  /**
   * The node whose discard failed the run. A deadline discards everything that is open (R27): then the first of those by name, unless
   * one was discarded before. Null when no node of the run is discarded, which only a change by hand can bring about.
   */
  readonly node: string | null;
  readonly kind: string | null;
  /** The stored error text of that node. */
  readonly error: string | null;
  /** `retryable`, `permanent`, `deadline`, `reclaim_limit` or `timeout`. */
  readonly errorKind: string | null;
  constructor(
    readonly runId: string,
    discard: {
      readonly node: string | null;
      readonly kind: string | null;
      readonly error: string | null;
      readonly errorKind: string | null;
    },
  ) {
    const where =
      discard.node === null ? '' : ` at node "${discard.node}"${discard.kind === null ? '' : ` (${discard.kind})`}`;
    const why = discard.error ?? discard.errorKind ?? 'no error was stored';
    super(
      `Run ${runId} failed${where}: ${why}${/[.!?]$/.test(why) ? '' : '.'} ` +
        `Fix the cause, then reopen it with OperatorClient.retry or \`cyclone retry ${runId} --all\`.`,
    );
    this.node = discard.node;
    this.kind = discard.kind;
    this.error = discard.error;
    this.errorKind = discard.errorKind;
  }
}

/** `result()` of a run that was cancelled. */
export class RunCancelledError extends CycloneError {
  static override readonly code = 'CYCLONE_RUN_CANCELLED';
  static {
    identify(this, 'RunCancelledError');
  }
  constructor(
    readonly runId: string,
    readonly reason: string | null = null,
  ) {
    super(
      `Run ${runId} was cancelled${reason === null ? '' : ` (${reason})`} and has no result. Submit a new run if the work is still wanted.`,
    );
  }
}

/**
 * `result()` of a run that completed without its result node: a failure that `onDepFailure: 'cancel_branch'` contained has taken it (R23).
 * A workflow that returns nothing has the result undefined instead.
 */
export class ResultUnavailableError extends CycloneError {
  static override readonly code = 'CYCLONE_RESULT_UNAVAILABLE';
  static {
    identify(this, 'ResultUnavailableError');
  }
  constructor(
    readonly runId: string,
    /** Why, as a clause: `its result node "mail" is cancelled`. */
    readonly reason: string,
  ) {
    super(
      `Run ${runId} completed without a result: ${reason}, because a failure in its branch was contained. Use wait() for the final state, ` +
        `or leave out onDepFailure where the result depends on it; then such a failure fails the run.`,
    );
  }
}

/** `wait()` or `result()` gave up; the run itself goes on. */
export class WaitTimeoutError extends CycloneError {
  static override readonly code = 'CYCLONE_WAIT_TIMEOUT';
  static {
    identify(this, 'WaitTimeoutError');
  }
  constructor(
    readonly runId: string,
    readonly timeoutMs: number,
  ) {
    super(
      `Run ${runId} did not end within ${timeoutMs} ms. It goes on; wait again with a longer timeout, ` +
        `or see what holds it with \`cyclone steps ${runId}\`.`,
    );
  }
}
