import type { SubmittedRun, WaitOptions } from '../graph/client-types.js';
import { parseDuration } from '../model/duration.js';
import {
  ResultUnavailableError,
  RunCancelledError,
  RunFailedError,
  RunNotFoundError,
} from '../model/errors/run-errors.js';
import type { PayloadSealer } from '../model/payload-codec.js';
import { decodePayload } from '../model/payload.js';
import type { TerminalRunState } from '../model/states.js';
import type { Engine } from '../store/engine.js';
import type { RunRecord, StepRecord } from '../store/run-store.js';
import type { OperatorClient } from './operator-client.js';
import type { FinalOutcome, RunWatcher, WatchOptions } from './run-watcher.js';
import { onConnection } from './transient.js';

/** @internal What all handles of a client share. */
export interface RunAccess {
  readonly engine: Engine;
  readonly watcher: RunWatcher;
  readonly operator: OperatorClient;
}

/** A run: waits for it, looks at it, and changes its course. It holds no resources, and the run does not depend on it. */
export class RunHandle<Out> implements SubmittedRun<Out> {
  /** Private for JSON and consoles too: a handle shows its id and no engine. */
  readonly #access: RunAccess;

  /** @internal Handles come from WorkflowClient. */
  constructor(
    /** Decimal digits: a bigint of the database. */
    readonly id: string,
    /** Whether this call made the run; false when `submitOnce` found it (R7), and for `WorkflowClient.run`. */
    readonly created: boolean,
    access: RunAccess,
  ) {
    this.#access = access;
  }

  /**
   * Waits for the end of the run and gives its final state. A run that was reopened since has not ended.
   * @throws WaitTimeoutError, RunNotFoundError, ClientClosedError, and the reason of `signal` when it aborts
   */
  async wait(options: WaitOptions = {}): Promise<TerminalRunState> {
    return this.#access.watcher.state(this.id, watchOptions(options));
  }

  /**
   * Waits for the end of the run and gives its result; undefined for a workflow without one.
   * @throws RunFailedError, RunCancelledError, ResultUnavailableError, WaitTimeoutError, RunNotFoundError, ClientClosedError,
   *   PayloadCodecError, and the reason of `signal` when it aborts
   */
  async result(options: WaitOptions = {}): Promise<Out> {
    const outcome = await this.#access.watcher.outcome(this.id, watchOptions(options));
    return (await resultOf(outcome, this.#access.engine.settings.payloads)) as Out;
  }

  /**
   * The run as it is now.
   * @throws RunNotFoundError, ConnectionLostError, DatabaseError
   */
  async info(): Promise<RunRecord> {
    const { engine } = this.#access;
    const info = await onConnection(engine.connections, `reading of run ${this.id}`, (session) =>
      engine.runs.runInfo(session, this.id),
    );
    if (!info) throw new RunNotFoundError(this.id);
    return info;
  }

  /**
   * Its steps by name, with every column of cyclone_v_steps.
   * @throws RunNotFoundError
   */
  steps(): Promise<StepRecord[]> {
    return this.#access.operator.steps(this.id);
  }

  /** As OperatorClient.cancel. @throws RunNotFoundError, AlreadyTerminalError */
  cancel(reason?: string): Promise<void> {
    return this.#access.operator.cancel(this.id, { reason });
  }

  /** As OperatorClient.pause. @throws RunNotFoundError, AlreadyTerminalError */
  pause(): Promise<void> {
    return this.#access.operator.pause(this.id);
  }

  /** As OperatorClient.resume. @throws RunNotFoundError, NotPausedError */
  resume(): Promise<void> {
    return this.#access.operator.resume(this.id);
  }
}

function watchOptions({ timeout, signal }: WaitOptions): WatchOptions {
  return {
    ...(timeout === undefined ? {} : { timeoutMs: parseDuration(timeout, 'timeout') }),
    ...(signal === undefined ? {} : { signal }),
  };
}

async function resultOf(outcome: FinalOutcome, payloads: PayloadSealer | undefined): Promise<unknown> {
  const { runId, state, resultNode, resultState, output, cancelReason } = outcome;
  switch (state) {
    case 'failed': {
      const { failedNode, failedKind, error, errorKind } = outcome;
      throw new RunFailedError(runId, { node: failedNode, kind: failedKind, error, errorKind });
    }
    case 'cancelled':
      throw new RunCancelledError(runId, cancelReason);
    case 'completed':
      if (resultNode === null) return undefined;
      if (resultState !== 'completed') {
        throw new ResultUnavailableError(runId, `its result node "${resultNode}" is ${resultState}`);
      }
      if (output === null) return null;
      return payloads ? payloads.open(output, { runId, node: resultNode, part: 'output' }) : decodePayload(output);
  }
}
