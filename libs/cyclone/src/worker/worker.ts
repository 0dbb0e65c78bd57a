import { monotonicMs } from './clock.js';
import type { Engine } from '../store/engine.js';
import type { RegisteredHandler } from './handler.js';
import type { RenewalState } from './leases/lease-keeper.js';
import { Runtime } from './runtime.js';
import { ProblemLog, type WorkerLogger } from './worker-logger.js';
import type { ResolvedWorkerOptions } from './worker-options.js';

export type { RegisteredHandler } from './handler.js';
export type { RenewalState } from './leases/lease-keeper.js';
export type { WorkerLogger } from './worker-logger.js';

/** How a worker is doing. */
export interface WorkerHealth {
  readonly id: string;
  readonly state: 'stopped' | 'running' | 'draining';
  /** Whether it runs and can claim and complete steps now (R41): `problems` is empty then. */
  readonly healthy: boolean;
  /**
   * What keeps it from that, each a sentence that says what to do: no connection for a lane, a session that may not write, a call without an
   * answer, renewals or housekeeping that do not succeed, slots taken by handlers that ignore their signal.
   */
  readonly problems: readonly string[];
  /** Steps whose lease it holds. */
  readonly running: number;
  readonly queues: Readonly<Record<string, { readonly slots: number; readonly taken: number }>>;
  /** Connections that it claims and completes on. */
  readonly connections: number;
  /** When its housekeeping last succeeded. */
  readonly lastTickAt: Date | null;
  /** Who renews its leases. Where `by` is not `thread`, `reason` says why, and what to do about it. */
  readonly renewals: RenewalState;
  /** When its leases were last renewed. */
  readonly lastRenewalAt: Date | null;
  /** Handlers that still work although their step timed out or was lost: they ignore `ctx.signal` (R17). */
  readonly ignoringSignal: number;
}

/** Executes steps: claims them, calls their handlers, and tells the database what came of it. */
export class Worker {
  private runtime: Runtime | undefined;
  private stopping: Promise<void> | undefined;

  constructor(
    private readonly engine: Engine,
    private readonly handlers: ReadonlyMap<string, RegisteredHandler>,
    private readonly options: ResolvedWorkerOptions,
    private readonly logger: WorkerLogger,
  ) {}

  /** The lease owner. */
  get id(): string {
    return this.options.id;
  }

  /**
   * Begins to work, in the async context of the call (C11). It does not wait for the database: when that does not answer, the
   * worker logs it and keeps trying, and begins when it can. A worker that runs already goes on.
   * @throws InvalidOptionError when the DataSource's pool is too small (C14)
   */
  async start(): Promise<void> {
    await this.stopping;
    if (this.runtime) return;
    this.runtime = new Runtime(this.engine, this.handlers, this.options, new ProblemLog(this.logger), this.logger);
    this.runtime.start();
  }

  /**
   * Stops in order (R20): claims nothing more, lets handlers finish for `shutdownTimeout`, then aborts `ctx.signal`, then gives
   * back what is left. It never rejects, and the worker does not touch the database afterwards. Harmless before `start` and twice.
   */
  async stop(): Promise<void> {
    const { runtime } = this;
    if (!runtime) return this.stopping;
    this.stopping ??= runtime.stop().finally(() => {
      this.runtime = undefined;
      this.stopping = undefined;
    });
    return this.stopping;
  }

  health(): WorkerHealth {
    const { runtime, id } = this;
    if (!runtime) {
      return {
        id,
        state: 'stopped',
        healthy: false,
        problems: ['The worker does not run: start it with WorkerPool.start().'],
        running: 0,
        queues: {},
        connections: 0,
        lastTickAt: null,
        renewals: { by: 'none', reason: 'The worker does not run' },
        lastRenewalAt: null,
        ignoringSignal: 0,
      };
    }
    const { book, executor, keeper, slots, tick } = runtime;
    const problems = runtime.problemsNow();
    const state = runtime.isStopping ? 'draining' : 'running';
    if (state === 'draining') problems.push('The worker shuts down.');
    return {
      id,
      state,
      healthy: problems.length === 0,
      problems,
      running: book.size,
      queues: slots.report(),
      connections: runtime.connectedLanes,
      lastTickAt: tick.succeededAt === undefined ? null : new Date(Date.now() - (performance.now() - tick.succeededAt)),
      renewals: keeper.state,
      lastRenewalAt: keeper.renewedAt === 0 ? null : new Date(Date.now() - (monotonicMs() - keeper.renewedAt)),
      ignoringSignal: executor.ignoring,
    };
  }
}
