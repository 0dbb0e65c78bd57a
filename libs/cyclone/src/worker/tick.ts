import { isAnswer } from '../store/database-fault.js';
import type { EngineRow } from '../store/engine-row.js';
import type { Engine } from '../store/engine.js';
import type { Session } from '../store/session.js';
import type { Aftermath } from './aftermath.js';
import type { Lane } from './lanes/lane.js';
import type { ResolvedWorkerOptions } from './worker-options.js';
import type { ProblemLog } from './worker-logger.js';

/** Steps that one sweep handles at most, and runs past their deadline; when there are more of either it goes on at once, this often. */
const SWEEP_LIMIT = 200;
const MAX_SWEEPS = 10;
/** How far ahead a tick looks for work that comes due, in poll intervals: the next tick may be late. */
const AHEAD = 2;
/** A worker that was not seen for so long and holds no lease is forgotten; each worker looks as often, and when it starts. */
const FORGOTTEN_MS = 86_400_000;
/** How soon it looks again when that has failed. */
const FORGET_AGAIN_MS = 3_600_000;

export interface TickTools {
  readonly engine: Engine;
  readonly options: ResolvedWorkerOptions;
  readonly kinds: readonly string[];
  readonly lane: Lane;
  readonly aftermath: Aftermath;
  readonly problems: ProblemLog;
  /** Steps that have waited for a connection for longer than is good, with the time since when in epoch milliseconds (R42). */
  waiting(): Readonly<Record<string, number>> | undefined;
  /** What keeps the worker from claiming and completing. */
  troubles(): readonly string[];
  /** These queues hold work that is due. */
  due(queues: readonly string[]): void;
  /** This queue has work in so many milliseconds. */
  later(queue: string, inMs: number): void;
}

/** The housekeeping of a worker in one call for each poll interval: last seen, sweep, deadlines, poll (R19). */
export class Tick {
  /** On `performance.now()`, when the last one succeeded. */
  succeededAt: number | undefined;
  private running = false;
  /** On `performance.now()`, when dead workers are looked for next. */
  private forgetAt = 0;

  constructor(private readonly tools: TickTools) {}

  /** Ticks, unless the last one is still under way. Never rejects. */
  async run(): Promise<void> {
    if (this.running) return;
    this.running = true;
    const { lane, problems } = this.tools;
    try {
      for (let sweeps = 0; sweeps < MAX_SWEEPS; sweeps++) {
        const rows = await lane.chore((session) => this.call(session));
        this.succeededAt = performance.now();
        if (!this.read(rows)) break;
      }
      if (performance.now() >= this.forgetAt) await this.forget();
    } catch (error) {
      problems.report(isAnswer(error) ? 'The housekeeping failed' : 'The housekeeping lost its connection', error);
    } finally {
      this.running = false;
    }
  }

  /** Rows of workers that died must not pile up: each start of a process leaves one when it ends without a farewell. */
  private async forget(): Promise<void> {
    const { engine, lane } = this.tools;
    this.forgetAt = performance.now() + FORGET_AGAIN_MS;
    await lane.chore((session) => engine.operations.forgetWorkers(session, FORGOTTEN_MS));
    this.forgetAt = performance.now() + FORGOTTEN_MS;
  }

  private async call(session: Session): Promise<EngineRow[]> {
    const { engine, options, kinds } = this.tools;
    const rows = await engine.store.tick(session, {
      worker: options.id,
      queues: [...options.queues.keys()],
      kinds,
      maxReclaims: options.maxReclaims,
      sweep: this.maySweep,
      limit: SWEEP_LIMIT,
      waiting: this.tools.waiting(),
      withinMs: AHEAD * options.pollIntervalMs,
      problems: this.tools.troubles(),
    });
    if (rows.some((row) => row.event === 'unknown_worker')) {
      await engine.store.registerWorker(session, {
        id: options.id,
        host: options.host,
        pid: options.pid,
        version: options.version,
        queues: Object.fromEntries(options.queues),
        kinds,
      });
    }
    return rows;
  }

  /**
   * After an outage every worker needs the time of a beat to renew its leases, before anybody may judge that they have expired
   * (C8). The same at the start: the database may have come back just now.
   */
  private get maySweep(): boolean {
    const { lane, options } = this.tools;
    return lane.connectedAt !== undefined && performance.now() - lane.connectedAt >= options.leaseTtlMs / 3;
  }

  /** True when the sweep has probably left something. */
  private read(rows: readonly EngineRow[]): boolean {
    const due: string[] = [];
    const changes: EngineRow[] = [];
    let swept = 0;
    let overdue = 0;
    for (const row of rows) {
      if (row.event === 'due') due.push(row.queue);
      else if (row.event === 'later') this.tools.later(row.queue, row.info.delayMs ?? 0);
      else if (row.event === 'broken') this.complain(row);
      else if (row.event === 'clock_set_back') this.tellClock(row);
      else {
        if (row.event === 'reclaimed' || row.event === 'timed_out' || row.info.errorKind === 'reclaim_limit') swept++;
        else if (row.event === 'run_failed') overdue++;
        changes.push(row);
      }
    }
    this.tools.aftermath.of(changes);
    if (due.length > 0) this.tools.due(due);
    return swept >= SWEEP_LIMIT || overdue >= SWEEP_LIMIT;
  }

  private tellClock({ info }: EngineRow): void {
    this.tools.problems.report(
      `The database's clock was set back by ${Math.round((info.delayMs ?? 0) / 1_000)} s. What was due stays due; backoffs, delays and ` +
        `deadlines that ran at that time end later by as much`,
    );
  }

  private complain({ runId, node, info }: EngineRow): void {
    const what =
      runId === ''
        ? 'look for stranded runs'
        : node === ''
          ? `end run ${runId} at its deadline`
          : `take back step ${runId}:${node}`;
    this.tools.problems.report(
      `The housekeeping cannot ${what} (SQLSTATE ${info.sqlstate ?? '?'}): ${info.error ?? ''}`,
    );
  }
}
