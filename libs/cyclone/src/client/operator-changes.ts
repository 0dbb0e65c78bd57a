import {
  AlreadyTerminalError,
  ChildNotRetryableError,
  NodeNotFoundError,
  NotPausedError,
  NotRetryableError,
  RunNotFoundError,
} from '../model/errors/run-errors.js';
import type { EngineRow } from '../store/engine-row.js';
import type { Engine } from '../store/engine.js';
import type { Operation } from '../store/operations-store.js';
import type { Session } from '../store/session.js';
import type { ClientLogger } from './definitions.js';
import { isWorthNoting, noteOf, type ActOptions } from './operator-options.js';
import { onConnection, repeatTransient } from './transient.js';

/** What to do with a run. */
export interface RunChange {
  readonly action: Operation['action'];
  readonly node?: string;
  readonly additional?: number;
  /** Kept with the audit row. */
  readonly detail?: Operation['detail'];
}

/** Changes single runs: one transaction each, with an audit row when it is said who or why, and tells everybody after its commit. */
export class RunChanges {
  constructor(
    private readonly engine: Engine,
    private readonly logger: ClientLogger,
  ) {}

  /** @throws the error that fits when the database refuses it: nothing was changed */
  async apply(runId: string, change: RunChange, options: ActOptions): Promise<void> {
    const note = noteOf(options);
    const { action, node = null, additional = 0, detail = null } = change;
    const rows = await repeatTransient(() =>
      onConnection(this.engine.connections, `${NAMES[action]} of run ${runId}`, (session) =>
        isWorthNoting(note)
          ? this.engine.operations.operate(session, { action, runId, node, additional, detail, ...note })
          : this.call(session, runId, { action, node, additional }),
      ),
    );
    for (const row of rows) if (row.event === 'refused') throw refusal(runId, row);
    await this.announce(rows);
  }

  /** Tells of a change that is committed: listeners, those who wait for work, and sessions whose leases were taken away. */
  async announce(rows: readonly EngineRow[]): Promise<void> {
    this.engine.events.emitRows(rows);
    const queues = rows.filter(becameAvailable).map(({ queue }) => queue);
    const cancelled = rows.filter(({ event }) => event === 'run_cancelled').map((row) => row.runId);
    if (queues.length + cancelled.length > 0) this.engine.notifier.wake({ queues: [...new Set(queues)], cancelled });
    await this.endTransactions(rows);
  }

  private call(
    session: Session,
    runId: string,
    { action, node, additional }: Pick<Operation, 'action' | 'node' | 'additional'>,
  ): Promise<EngineRow[]> {
    const { store } = this.engine;
    switch (action) {
      case 'cancel':
        return store.cancel(session, runId, null);
      case 'pause':
        return store.pause(session, runId);
      case 'resume':
        return store.resume(session, runId);
      case 'retry':
      case 'retry_all':
        return store.retry(session, runId, node, additional, null);
    }
  }

  /** Ends the completion transactions of leases that this call took away: a stopped worker would keep its locks for ever (C3). */
  private async endTransactions(rows: readonly EngineRow[]): Promise<void> {
    const taken = rows.filter(
      ({ event, info }) => (event === 'cancelled' || event === 'discarded') && info.was === 'running',
    );
    if (taken.length === 0) return;
    try {
      await this.engine.connections.use(
        (session) => this.engine.store.endBackends(session, taken),
        'end of lost sessions',
      );
    } catch (error) {
      // The change itself is committed, so it must not look as if it had failed.
      this.logger.warn(
        `Transactions of cancelled steps could not be ended: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
  }
}

const NAMES = { cancel: 'cancel', pause: 'pause', resume: 'resume', retry: 'retry', retry_all: 'retry' } as const;

function becameAvailable({ event, info }: EngineRow): boolean {
  return event === 'promoted' || ((event === 'resumed' || event === 'reopened') && info.state === 'available');
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
