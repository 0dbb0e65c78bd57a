import { createHash } from 'node:crypto';
import { sleep, startTimer, type Timer } from '../model/timer.js';
import type { Engine } from '../store/engine.js';
import type { EngineRow } from '../store/engine-row.js';
import type { Lease } from '../store/lease.js';
import type { Wakeup } from '../store/notifier.js';
import { Aftermath } from './aftermath.js';
import { ConnectionLine } from './completion/connection-line.js';
import type { Execution } from './execution.js';
import { DueTimes } from './due-times.js';
import { Executor } from './executor.js';
import type { RegisteredHandler } from './handler.js';
import { captureContext } from './in-context.js';
import { CallGate } from './lanes/call-gate.js';
import type { LaneHost } from './lanes/lane-host.js';
import { Lane } from './lanes/lane.js';
import { LonelySettler } from './lanes/lonely-settler.js';
import { LeaseBook } from './leases/lease-book.js';
import { LeaseKeeper } from './leases/lease-keeper.js';
import { Listener } from './listener.js';
import { lanesFor } from './pool-size.js';
import { RetentionSweep } from './retention-sweep.js';
import { Slots } from './slots.js';
import { Tick } from './tick.js';
import type { ResolvedWorkerOptions } from './worker-options.js';
import { problemsOf } from './worker-health.js';
import { REPORTED_WAIT_MS } from '../store/connection-wait.js';
import type { ProblemLog, WorkerLogger } from './worker-logger.js';

/** How long a few free slots wait for more of them, so that one call claims for all. */
const RIPEN_MS = 5;

/** How long handlers have to react to their signal at shutdown, before their steps are given back (R20). */
const GRACE_MS = 1_000;
/** How long the last calls of a shutdown may take each. */
const LAST_CALL_MS = 3_000;
/** A call that is not answered for so long, or for a TTL if that is longer, will not be answered. */
const CALL_LIMIT_MS = 30_000;

/** Everything of a worker between its start and its stop. */
export class Runtime implements LaneHost {
  readonly owner: string;
  readonly ownerHash: string;
  readonly leaseTtlMs: number;
  readonly maxReclaims: number | null;
  readonly kinds: readonly string[];
  readonly slots: Slots;
  readonly book = new LeaseBook();
  readonly gate = new CallGate();
  readonly lonely: LonelySettler;
  readonly aftermath: Aftermath;
  readonly executor: Executor;
  readonly keeper: LeaseKeeper;
  readonly tick: Tick;
  private readonly line: ConnectionLine;
  readonly inContext = captureContext();
  private stopping = false;
  private readonly startedAt = performance.now();
  private said: readonly string[] = [];
  private ripening: Timer | undefined;
  readonly lanes: readonly Lane[];
  private readonly dueTimes = new DueTimes((queues) => this.inContext(() => this.heat(queues)));
  private readonly listener: Listener | undefined;
  private readonly retention: RetentionSweep | undefined;
  private readonly stopped = new AbortController();
  private readonly undo: (() => void)[] = [];

  /** @throws InvalidOptionError when the pool is too small to work at all (C14) */
  constructor(
    readonly engine: Engine,
    handlers: ReadonlyMap<string, RegisteredHandler>,
    private readonly options: ResolvedWorkerOptions,
    readonly problems: ProblemLog,
    logger: WorkerLogger,
  ) {
    const lanes = lanesFor(engine.connections.poolSize, problems);
    this.owner = options.id;
    this.ownerHash = createHash('sha256').update(options.id).digest('hex').slice(0, 12);
    this.leaseTtlMs = options.leaseTtlMs;
    this.maxReclaims = options.maxReclaims;
    this.kinds = [...handlers.keys()];
    this.slots = new Slots(options.queues, lanes);
    this.lanes = Array.from({ length: lanes }, (_, index) => new Lane(index, this));
    this.lonely = new LonelySettler(this);
    this.aftermath = new Aftermath(engine, this.owner, (leases) => this.taken(leases));
    const { connections } = engine;
    // A handler in a completion transaction may need a second connection (C14).
    const capacity = Math.max(1, connections.poolSize - lanes - 1);
    this.line = new ConnectionLine({ connections, problems, lanes, capacity });
    this.executor = new Executor({
      engine,
      owner: this.owner,
      handlers,
      maxPayloadBytes: options.maxPayloadBytes,
      book: this.book,
      slots: this.slots,
      aftermath: this.aftermath,
      problems,
      logger,
      inContext: this.inContext,
      line: this.line,
      stopped: this.stopped.signal,
      hand: (execution) => this.laneOf(execution).hand(execution),
      onSlotFree: () => this.wake(),
    });
    this.keeper = new LeaseKeeper(
      {
        owner: this.owner,
        leaseTtlMs: options.leaseTtlMs,
        stallLimitMs: options.stallLimitMs,
        preparedStatements: engine.connections.preparedStatements,
      },
      {
        engine,
        book: this.book,
        problems,
        gone: (execution) => this.executor.gone(execution),
        works: () => this.inContext(() => this.heat(this.slots.names)),
      },
    );
    this.tick = new Tick({
      engine,
      options,
      kinds: this.kinds,
      lane: this.lanes.at(-1) as Lane,
      aftermath: this.aftermath,
      problems,
      waiting: () => this.line.waiting(),
      troubles: () => this.troubles(),
      due: (queues) => this.heat(queues),
      later: (queue, inMs) => this.dueTimes.expect(queue, inMs),
    });
    this.listener = options.listen ? new Listener(engine, problems) : undefined;
    const { retention } = options;
    this.retention = retention ? new RetentionSweep({ engine, retention, problems }) : undefined;
  }

  start(): void {
    const { options } = this;
    this.undo.push(this.engine.notifier.subscribe((wakeup) => this.hear(wakeup)));
    this.every('tick', options.pollIntervalMs, () => this.housekeep());
    this.keeper.start();
    this.listener?.start();
    this.housekeep();
    if (this.retention && options.retention) {
      this.every('retention', options.retention.intervalMs, () => this.retention?.run());
      this.retention.run(); // processes that never live as long as the interval purge too
    }
  }

  private every(name: string, everyMs: number, call: () => void): void {
    const timer = this.options.timers.every(name, everyMs, () => this.inContext(call));
    this.undo.push(() => timer.stop());
  }

  /** Whether steps may be claimed: not before their leases can be renewed, and not while they cannot (R41). */
  get claiming(): boolean {
    return !this.stopping && this.keeper.state.by !== 'none';
  }

  /** Stops in order (R20): claims nothing more, lets handlers finish, then aborts them, then gives their steps back. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.ripening?.cancel();
    this.dueTimes.stop();
    const { shutdownTimeoutMs } = this.options;
    void this.retire(false);
    const purged = this.retention?.stop(LAST_CALL_MS);
    await this.emptyWithin(shutdownTimeoutMs);
    if (this.book.size > 0) {
      this.executor.abortAll(new Error('The worker is shutting down.'));
      await this.emptyWithin(GRACE_MS);
      await within(
        LAST_CALL_MS,
        Promise.all([...this.book.values()].map((execution) => this.executor.release(execution))),
      );
      await this.emptyWithin(LAST_CALL_MS);
    }
    for (const undo of this.undo.splice(0)) undo();
    await within(LAST_CALL_MS, this.retire(true));
    this.stopped.abort();
    this.lonely.close();
    // A database host that does not answer may keep those waiting who are just connecting.
    await within(
      LAST_CALL_MS,
      Promise.all([
        purged,
        this.listener?.stop(),
        this.keeper.stop(),
        this.line.close(),
        ...this.lanes.map((lane) => lane.close(LAST_CALL_MS)),
      ]),
    );
    await within(LAST_CALL_MS, this.engine.notifier.close());
  }

  get isStopping(): boolean {
    return this.stopping;
  }

  /** How many lanes have a connection. */
  get connectedLanes(): number {
    return this.lanes.filter((lane) => lane.connectedAt !== undefined).length;
  }

  execute(row: EngineRow, sentAt: number): void {
    this.line.prepare();
    this.executor.start(row, sentAt);
  }

  completed(execution: Execution): void {
    this.executor.completed(execution);
  }

  settled(execution: Execution): void {
    this.executor.settled(execution);
  }

  lost(execution: Execution): void {
    this.executor.lost(execution);
  }

  refuse(execution: Execution, error: unknown): void {
    this.executor.refuse(execution, error);
  }

  giveUp(execution: Execution, error: unknown): void {
    this.executor.giveUp(execution, error);
  }

  /** Lets idle lanes claim, at once, or in a moment when few slots are free. */
  wake(): void {
    const wanted = this.claiming ? this.slots.wanted : undefined;
    if (wanted === 'soon') {
      this.ripening ??= startTimer(RIPEN_MS, () => {
        this.ripening = undefined;
        this.slots.ripen();
        this.wake();
      });
    } else if (wanted === 'now') this.kick();
  }

  /** One lane looks first; it wakes the others when there is more than it takes. */
  private kick(): void {
    const idle = this.lanes.find((lane) => lane.isIdle);
    idle?.kick();
  }

  private heat(queues: readonly string[]): void {
    for (const queue of queues) this.slots.heat(queue);
    this.wake();
  }

  private hear({ queues, cancelled, inMs }: Wakeup): void {
    if (inMs === undefined) this.heat(queues);
    else for (const queue of queues) if (this.options.queues.has(queue)) this.dueTimes.expect(queue, inMs);
    if (cancelled.length === 0 || this.book.size === 0) return;
    const runs = new Set(cancelled);
    for (const execution of this.book.values()) {
      if (!runs.has(execution.runId)) continue;
      this.keeper.beatNow();
      return;
    }
  }

  /** What keeps it from claiming and completing steps now, each a sentence that says what to do. Empty: nothing. */
  troubles(): string[] {
    const { lanes, keeper, tick, book, executor, options } = this;
    const slots = [...options.queues.values()].reduce((sum, size) => sum + size, 0);
    const { leaseTtlMs, pollIntervalMs } = options;
    return problemsOf({ lanes, keeper, tick, book, ignoring: executor.ignoring, slots, leaseTtlMs, pollIntervalMs });
  }

  /** The same, with what its handlers wait for. */
  problemsNow(): string[] {
    const waiting = Object.keys(this.line.waiting() ?? {}).length;
    if (waiting === 0) return this.troubles();
    return [
      ...this.troubles(),
      `${waiting} step(s) wait for a connection to complete on. Set a larger poolSize, or look for handlers that keep connections.`,
    ];
  }

  /** Logs what is new of it, and when it is over, however much else is logged. */
  private sayProblems(): void {
    const problems = this.problemsNow();
    // It has hardly begun: what has not succeeded yet has not failed either.
    if (performance.now() - this.startedAt < REPORTED_WAIT_MS && !this.lanes.some(({ trouble }) => trouble)) return;
    const before = this.said;
    this.said = problems;
    for (const problem of problems)
      if (!before.includes(problem)) this.problems.notice(`This worker is not healthy. ${problem}`);
    if (before.length > 0 && problems.length === 0) this.problems.notice('This worker is healthy again.');
  }

  private housekeep(): void {
    this.keeper.expire();
    this.sayProblems();
    for (const lane of this.lanes) lane.recheck();
    for (const lane of this.lanes) lane.watch(Math.max(CALL_LIMIT_MS, this.leaseTtlMs));
    void this.tick.run();
  }

  /** Leases that a call of ours has taken from running handlers, here or anywhere (C3). */
  private taken(leases: readonly Lease[]): void {
    for (const lease of leases) {
      const execution = this.book.get(lease);
      if (execution) this.executor.gone(execution);
    }
    void this.endBackends(leases);
  }

  private async endBackends(leases: readonly Lease[]): Promise<void> {
    const lane = this.lanes.at(-1) as Lane;
    try {
      const ended = await lane.chore((session) => this.engine.store.endBackends(session, leases));
      if (ended === null) {
        this.problems.report('This role may not end the sessions of lost leases; grant it pg_signal_backend');
      }
    } catch (error) {
      this.problems.report('The sessions of lost leases could not be ended', error);
    }
  }

  private async retire(gone: boolean): Promise<void> {
    const lane = this.lanes.at(-1) as Lane;
    try {
      await lane.chore((session) => this.engine.store.retireWorker(session, this.owner, gone));
    } catch (error) {
      this.problems.report('The worker could not sign off', error);
    }
  }

  private laneOf({ runId }: Execution): Lane {
    // A run belongs to one lane, so that two never fight over it.
    return this.lanes[runId.charCodeAt(runId.length - 1) % this.lanes.length] as Lane;
  }

  private emptyWithin(limitMs: number): Promise<void> {
    return within(limitMs, this.book.empty());
  }
}

/** Waits for `work`, but no longer than `limitMs`. */
async function within(limitMs: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController();
  await Promise.race([work.finally(() => done.abort()), sleep(limitMs, { signal: done.signal })]);
}
