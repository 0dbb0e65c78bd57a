import { ENGINE_COLUMNS, toEngineRow, type EngineRow } from './engine-row.js';
import { quoteIdentifier } from './identifier.js';
import { leaseMark, type Lease } from './lease.js';
import { literal } from './literal.js';
import { functionCall, type Session, type Statement } from './session.js';

/** A finished execution for the next flush; `output` is JSON text, null for an action. */
export interface Completion extends Lease {
  readonly output: string | null;
}

/** How an execution that did not complete its step is settled (cyclone_settle). */
export interface Settlement extends Lease {
  readonly outcome: 'failed' | 'timed_out' | 'snoozed' | 'interrupted' | 'released';
  readonly error: string | null;
  readonly errorKind: 'retryable' | 'permanent' | 'timeout' | null;
  readonly panicStack: string | null;
  readonly fingerprint: string | null;
  /** Milliseconds; null lets the database compute the backoff (C16). */
  readonly delayMs: number | null;
}

/** What a flush may claim from one queue. */
export interface QueueClaim {
  readonly queue: string;
  /** Free slots; 0 claims nothing. */
  readonly slots: number;
}

export interface FlushRequest {
  readonly owner: string;
  readonly leaseMs: number;
  readonly completions: readonly Completion[];
  readonly queues: readonly QueueClaim[];
  readonly kinds: readonly string[];
  readonly maxBytes: number;
}

export interface TickRequest {
  readonly worker: string;
  readonly queues: readonly string[];
  readonly kinds: readonly string[];
  /** null: no bound. */
  readonly maxReclaims: number | null;
  readonly sweep: boolean;
  readonly limit: number;
  /** Steps that wait for a connection, with the time since when in epoch milliseconds. */
  readonly waiting?: Readonly<Record<string, number>> | undefined;
  /** How far ahead to look for work that comes due, in milliseconds. */
  readonly withinMs: number;
  /** What keeps the worker from claiming and completing, for operators. */
  readonly problems: readonly string[];
}

export interface WorkerRecord {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly queues: Readonly<Record<string, number>>;
  readonly kinds: readonly string[];
}

/** A renewal that did not happen: `skipped` is locked right now, `gone` is no longer ours (C8). */
export interface MissedBeat extends Lease {
  readonly outcome: 'skipped' | 'gone';
}

/** A lease to renew, with what its handler reported since the last beat; null leaves what is stored. */
export interface ProgressBeat extends Lease {
  /** 0 to 1. */
  readonly fraction: number | null;
  readonly note: string | null;
}

/** The columns of a heartbeat's answer, in the order that `toMissedBeat` reads. */
const MISSED_COLUMNS = 'outcome, run_id, node, generation';

const column = <T, V>(items: readonly T[], pick: (item: T) => V): V[] => items.map(pick);

/**
 * The engine's functions in one schema, one typed method each. It holds no connection: each method takes the session to use.
 * The only place that knows their names and parameters.
 */
export class EngineStore {
  private readonly quoted: string;
  private readonly statements: Readonly<Record<string, Statement>>;

  constructor(readonly schema: string) {
    this.quoted = quoteIdentifier(schema);
    const call = (name: string, parameters: number, columns: string): Statement =>
      functionCall(schema, name, parameters, columns);
    const rows = (name: string, parameters: number): Statement => call(name, parameters, ENGINE_COLUMNS);
    this.statements = {
      flush: rows('cyclone_flush', 10),
      settle: rows('cyclone_settle', 12),
      tick: rows('cyclone_tick', 9),
      adopt: rows('cyclone_adopt', 8),
      cancel: rows('cyclone_cancel', 2),
      pause: rows('cyclone_pause', 1),
      resume: rows('cyclone_resume', 1),
      retry: rows('cyclone_retry', 4),
      heartbeat: call('cyclone_heartbeat', 7, MISSED_COLUMNS),
      registerWorker: call('cyclone_register_worker', 6, '1'),
      retireWorker: call('cyclone_retire_worker', 2, '1'),
      endBackends: call('cyclone_end_backends', 1, '*'),
      transactionStatus: call('cyclone_transaction_status', 4, '*'),
    };
  }

  /** Completes, promotes and claims in one round trip (cyclone_flush). */
  flush(session: Session, request: FlushRequest): Promise<EngineRow[]> {
    const { completions, queues } = request;
    return this.engineRows(session, 'flush', [
      request.owner,
      request.leaseMs,
      ...leaseColumns(completions),
      column(completions, (c) => c.output),
      column(queues, (q) => q.queue),
      column(queues, (q) => q.slots),
      request.kinds,
      request.maxBytes,
    ]);
  }

  /**
   * Completes one step and waits up to `waitMs` for its run, which others have locked (C2). One message, and so one transaction of
   * its own. Rejects with SQLSTATE 55P03 when the run stayed locked.
   */
  async completeWaiting(session: Session, owner: string, done: Completion, waitMs: number): Promise<EngineRow[]> {
    const run = literal(done.runId);
    const output = done.output === null ? 'null' : literal(done.output);
    const results = await session.script(
      'completeWaiting',
      `select set_config('lock_timeout', '${waitMs}ms', true);
       select 1 from ${this.quoted}.cyclone_runs where id = ${run}::bigint for no key update;
       select ${ENGINE_COLUMNS} from ${this.quoted}.cyclone_flush(${literal(owner)}, 0, array[${run}]::bigint[],
         array[${literal(done.node)}], array[${done.generation}], array[${output}]::jsonb[], '{}', '{}', '{}', 0)`,
    );
    return (results.at(-1)?.rows ?? []).map(toEngineRow);
  }

  /**
   * Settles executions that did not complete (cyclone_settle).
   * @param maxReclaims bounds interruptions (R39); null: no bound
   * @param waitMs null never waits for a locked run
   */
  settle(
    session: Session,
    owner: string,
    items: readonly Settlement[],
    maxReclaims: number | null,
    waitMs: number | null,
  ): Promise<EngineRow[]> {
    return this.engineRows(session, 'settle', [
      owner,
      column(items, (i) => i.outcome),
      ...leaseColumns(items),
      column(items, (i) => i.error),
      column(items, (i) => i.errorKind),
      column(items, (i) => i.panicStack),
      column(items, (i) => i.fingerprint),
      column(items, (i) => i.delayMs),
      maxReclaims,
      waitMs,
    ]);
  }

  /** Housekeeping of a worker: last seen, sweep, deadlines, poll (cyclone_tick). */
  tick(session: Session, request: TickRequest): Promise<EngineRow[]> {
    const { worker, queues, kinds, maxReclaims, sweep, limit, waiting, withinMs, problems } = request;
    return this.engineRows(session, 'tick', [
      worker,
      queues,
      kinds,
      maxReclaims,
      sweep,
      limit,
      waiting ? JSON.stringify(waiting) : null,
      withinMs,
      problems.length === 0 ? null : problems,
    ]);
  }

  /** Finds out what became of a call of `lostSession` whose answer was lost (cyclone_adopt, C4). */
  adopt(
    session: Session,
    owner: string,
    lostSession: string,
    doubt: readonly Lease[],
    known: readonly Lease[],
  ): Promise<EngineRow[]> {
    return this.engineRows(session, 'adopt', [owner, lostSession, ...leaseColumns(doubt), ...leaseColumns(known)]);
  }

  /** Renews leases and names those that were not renewed; `leases` null renews all of the owner (C8). */
  async heartbeat(
    session: Session,
    owner: string,
    leaseMs: number,
    leases: readonly Lease[] | null,
  ): Promise<MissedBeat[]> {
    const listed = leases === null ? [null, null, null] : leaseColumns(leases);
    return this.beat(session, [owner, leaseMs, ...listed, null, null]);
  }

  /** The same with what the handlers of these leases reported (R18). */
  async heartbeatProgress(
    session: Session,
    owner: string,
    leaseMs: number,
    beats: readonly ProgressBeat[],
  ): Promise<MissedBeat[]> {
    const reports = [column(beats, (b) => b.fraction), column(beats, (b) => b.note)];
    return this.beat(session, [owner, leaseMs, ...leaseColumns(beats), ...reports]);
  }

  async registerWorker(session: Session, worker: WorkerRecord): Promise<void> {
    const { id, host, pid, version, queues, kinds } = worker;
    await this.texts(session, 'registerWorker', [id, host, pid, version, JSON.stringify(queues), kinds]);
  }

  /** Says that a worker drains, or (`gone`) forgets it. */
  async retireWorker(session: Session, id: string, gone: boolean): Promise<void> {
    await this.texts(session, 'retireWorker', [id, gone]);
  }

  /** Ends the completion transactions of these leases (C3). Gives their number, or null when the role has no right to. */
  async endBackends(session: Session, leases: readonly Lease[]): Promise<number | null> {
    const [row] = await this.texts(session, 'endBackends', [leases.map((lease) => leaseMark(this.schema, lease))]);
    return row?.[0] == null ? null : Number(row[0]);
  }

  /** `committed`, `aborted` or `in progress` (C4). */
  async transactionStatus(session: Session, xid: string, completes: Lease | undefined): Promise<string> {
    const lease = completes ? [completes.runId, completes.node, completes.generation] : [null, null, null];
    const [row] = await this.texts(session, 'transactionStatus', [xid, ...lease]);
    return row?.[0] ?? 'aborted';
  }

  cancel(session: Session, runId: string, reason: string | null): Promise<EngineRow[]> {
    return this.engineRows(session, 'cancel', [runId, reason]);
  }

  pause(session: Session, runId: string): Promise<EngineRow[]> {
    return this.engineRows(session, 'pause', [runId]);
  }

  resume(session: Session, runId: string): Promise<EngineRow[]> {
    return this.engineRows(session, 'resume', [runId]);
  }

  /** `node` null retries all discarded nodes. */
  retry(
    session: Session,
    runId: string,
    node: string | null,
    additional: number,
    reason: string | null,
  ): Promise<EngineRow[]> {
    return this.engineRows(session, 'retry', [runId, node, additional, reason]);
  }

  private async beat(session: Session, values: readonly unknown[]): Promise<MissedBeat[]> {
    return (await this.texts(session, 'heartbeat', values)).map(toMissedBeat);
  }

  private async engineRows(session: Session, name: string, values: readonly unknown[]): Promise<EngineRow[]> {
    return (await this.texts(session, name, values)).map(toEngineRow);
  }

  private texts(session: Session, name: string, values: readonly unknown[]): Promise<(string | null)[][]> {
    return session.rows(this.statements[name] as Statement, values);
  }
}

/** Run ids, nodes and generations as three columns. */
function leaseColumns(leases: readonly Lease[]): [string[], string[], number[]] {
  return [column(leases, (l) => l.runId), column(leases, (l) => l.node), column(leases, (l) => l.generation)];
}

function toMissedBeat([outcome, runId, node, generation]: readonly (string | null)[]): MissedBeat {
  return {
    outcome: outcome as MissedBeat['outcome'],
    runId: runId ?? '',
    node: node ?? '',
    generation: Number(generation),
  };
}
