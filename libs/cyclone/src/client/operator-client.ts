import {
  AlreadyTerminalError,
  ChildNotRetryableError,
  NodeNotFoundError,
  NotPausedError,
  NotRetryableError,
  RunNotFoundError,
} from '../model/errors/run-errors.js';
import { InvalidOptionError } from '../model/errors/setup-errors.js';
import { isStorable, storableText } from '../model/storable-text.js';
import { leaseMark } from '../store/completion-store.js';
import type { EngineRow } from '../store/engine-row.js';
import type { Engine } from '../store/engine.js';
import type { StepRecord } from '../store/run-store.js';
import type { Session } from '../store/session.js';
import type { ClientLogger } from './definitions.js';
import { checkRunId } from './run-id.js';
import { onConnection, repeatTransient } from './transient.js';

const MAX_REASON_BYTES = 1_024;

export interface RetryOptions {
  /** Executions to grant beyond those that are left, 0 to 1,000,000. A reopened node always gets one (R11). @default 0 */
  readonly additionalAttempts?: number;
  /** Kept with what was reopened, at most 1 KiB. */
  readonly reason?: string;
}

/** What an operator does to runs. Each call is one transaction that changes all of it or nothing (R24). */
export class OperatorClient {
  constructor(
    private readonly engine: Engine,
    private readonly logger: ClientLogger,
  ) {}

  /**
   * Cancels a run with everything open in it; running handlers are told (R28).
   * @throws RunNotFoundError, AlreadyTerminalError, InvalidOptionError
   */
  async cancel(runId: string, reason?: string): Promise<void> {
    const id = checkRunId(runId);
    const text = checkReason(reason);
    await this.change('cancel', id, (session) => this.engine.store.cancel(session, id, text));
  }

  /**
   * Starts no new work of a run until it is resumed; what is running goes on (R26). Pausing a paused run changes nothing.
   * @throws RunNotFoundError, AlreadyTerminalError, InvalidOptionError
   */
  async pause(runId: string): Promise<void> {
    const id = checkRunId(runId);
    await this.change('pause', id, (session) => this.engine.store.pause(session, id));
  }

  /**
   * Lets a paused run go on, with the time that its timers and its deadline had left (R26).
   * @throws RunNotFoundError, NotPausedError, InvalidOptionError
   */
  async resume(runId: string): Promise<void> {
    const id = checkRunId(runId);
    await this.change('resume', id, (session) => this.engine.store.resume(session, id));
  }

  /**
   * Reopens one discarded node of a failed run, and the cancelled nodes that it blocked (R25).
   * @throws RunNotFoundError, NodeNotFoundError, NotRetryableError, ChildNotRetryableError, InvalidOptionError
   */
  async retry(runId: string, node: string, options: RetryOptions = {}): Promise<void> {
    const id = checkRunId(runId);
    if (typeof node !== 'string') throw new InvalidOptionError('node', 'must be the name of a node.');
    if (!isStorable(node)) throw new NodeNotFoundError(id, node);
    await this.reopen(id, node, options);
  }

  /**
   * Reopens every discarded node of a failed run (R25).
   * @throws RunNotFoundError, NotRetryableError, ChildNotRetryableError, InvalidOptionError
   */
  async retryAll(runId: string, options: RetryOptions = {}): Promise<void> {
    await this.reopen(checkRunId(runId), null, options);
  }

  /**
   * The steps of a run by name, with every column of cyclone_v_steps.
   * @throws RunNotFoundError, InvalidOptionError
   */
  async steps(runId: string): Promise<StepRecord[]> {
    const id = checkRunId(runId);
    const steps = await onConnection(this.engine.connections, `reading of the steps of run ${id}`, (session) =>
      this.engine.runs.runSteps(session, id),
    );
    if (steps.length === 0) throw new RunNotFoundError(id); // every run has a node
    return steps;
  }

  private async reopen(runId: string, node: string | null, options: RetryOptions): Promise<void> {
    const { additionalAttempts = 0, reason } = options;
    if (!Number.isInteger(additionalAttempts) || additionalAttempts < 0 || additionalAttempts > 1_000_000) {
      throw new InvalidOptionError('additionalAttempts', 'must be a whole number from 0 to 1000000.');
    }
    const text = checkReason(reason);
    await this.change('retry', runId, (session) =>
      this.engine.store.retry(session, runId, node, additionalAttempts, text),
    );
  }

  /** Makes the change, again when it lost a conflict, and tells everybody after its commit. */
  private async change(
    operation: string,
    runId: string,
    call: (session: Session) => Promise<EngineRow[]>,
  ): Promise<void> {
    const rows = await repeatTransient(() =>
      onConnection(this.engine.connections, `${operation} of run ${runId}`, call),
    );
    for (const row of rows) if (row.event === 'refused') throw refusal(runId, row);
    this.engine.events.emitRows(rows);
    const queues = rows.filter(becameAvailable).map(({ queue }) => queue);
    const cancelled = rows.filter(({ event }) => event === 'run_cancelled').map((row) => row.runId);
    if (queues.length + cancelled.length > 0) this.engine.notifier.wake({ queues: [...new Set(queues)], cancelled });
    await this.endTransactions(rows);
  }

  /** Ends the completion transactions of leases that this call took away: a stopped worker would keep its locks for ever (C3). */
  private async endTransactions(rows: readonly EngineRow[]): Promise<void> {
    const marks = rows.filter(({ event, info }) => event === 'cancelled' && info.was === 'running').map(leaseMark);
    if (marks.length === 0) return;
    try {
      await this.engine.connections.use((session) => this.engine.store.endBackends(session, marks));
    } catch (error) {
      // The change itself is committed, so it must not look as if it had failed.
      this.logger.warn(
        `Transactions of cancelled steps could not be ended: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
  }
}

function becameAvailable({ event, info }: EngineRow): boolean {
  return event === 'promoted' || ((event === 'resumed' || event === 'reopened') && info.state === 'available');
}

function checkReason(reason: string | undefined): string | null {
  if (reason === undefined) return null;
  if (typeof reason !== 'string') throw new InvalidOptionError('reason', 'must be a text.');
  return storableText(reason, MAX_REASON_BYTES);
}

function refusal(runId: string, { node, info }: EngineRow): Error {
  const state = info.state ?? 'unknown';
  switch (info.reason) {
    case 'not_found':
      return new RunNotFoundError(runId);
    case 'node_not_found':
      return new NodeNotFoundError(runId, node);
    case 'already_terminal':
      return new AlreadyTerminalError(runId, state);
    case 'not_paused':
      return new NotPausedError(runId, state);
    case 'child_not_retryable':
      return new ChildNotRetryableError(runId, info.rootRunId === undefined ? { node } : { rootRunId: info.rootRunId });
    case 'not_retryable':
      return new NotRetryableError(runId, obstacle(state, node, info), node === '' ? undefined : node);
    default:
      return new Error(
        `The database refused to change run ${runId} for a reason that this version does not know: ${info.reason}`,
      );
  }
}

function obstacle(state: string, node: string, info: EngineRow['info']): string {
  if (state !== 'failed') return `the run is ${state}`;
  return info.contained
    ? `the discard of node "${node}" is contained by cancel_branch, and only retryAll reopens such a node`
    : `node "${node}" is ${info.nodeState ?? 'not discarded'}`;
}
