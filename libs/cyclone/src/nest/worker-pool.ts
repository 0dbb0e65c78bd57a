import { InvalidOptionError } from '../model/errors/setup-errors.js';
import { DEFAULT_QUEUE } from '../model/options.js';
import { PACKAGE_VERSION } from '../model/package-version.js';
import type { Engine } from '../store/engine.js';
import { resolveRetention } from '../worker/retention-options.js';
import { resolveWorkerOptions, type ResolvedWorkerOptions, type WorkerOptions } from '../worker/worker-options.js';
import type { Timers } from '../worker/timers.js';
import { Worker, type WorkerHealth } from '../worker/worker.js';
import type { CycloneLogger } from './cyclone-logger.js';
import type { ResolvedCycloneOptions } from './cyclone-options.js';
import type { CycloneStartup } from './cyclone-startup.js';
import type { CycloneExplorer } from './cyclone.explorer.js';
import type { DiscoveredHandler } from './discovery.js';
import type { EventSubscriptions } from './event-subscriptions.js';
import type { HandlerEnhancers } from './handler-enhancers.js';
import { toRegisteredHandler } from './handler-invoker.js';
import { startupError } from './startup.error.js';
import type { WorkerStart } from './worker-start.js';

export interface WorkerPoolParts {
  readonly engine: Engine;
  readonly options: ResolvedCycloneOptions;
  readonly startup: CycloneStartup;
  readonly workerStart: WorkerStart;
  readonly explorer: CycloneExplorer;
  readonly subscriptions: EventSubscriptions;
  readonly enhancers: HandlerEnhancers;
  readonly timers: Timers;
  readonly logger: CycloneLogger;
}

/**
 * Executes steps in this process. It starts when all bootstrap hooks of the application are done and drains before its destroy hooks
 * begin (C10); with `worker: { autoStart: false }` the application starts it.
 */
export class WorkerPool {
  private worker: Worker | undefined;
  private started: Promise<void> | undefined;
  private stopped: Promise<void> | undefined;
  /** Counts the orders to stop, so that a start notices one that came meanwhile. */
  private stops = 0;
  private closed = false;

  /** @internal The module makes the pool. */
  constructor(private readonly parts: WorkerPoolParts) {}

  /** Whether the end of the bootstrap starts it. @internal */
  get autoStart(): boolean {
    const { worker } = this.parts.options;
    return worker !== false && worker.autoStart !== false;
  }

  /**
   * Begins to execute steps. Does nothing when it runs already, or when the application shuts down.
   * @throws InvalidOptionError with `worker: false`, and whatever refuses the start of the application (R22)
   */
  async start(): Promise<void> {
    await this.stopped;
    if (this.closed) return;
    this.started ??= this.launch();
    await this.started;
  }

  /**
   * Stops claiming, lets handlers finish for `shutdownTimeout`, then gives back what is left (R20). Harmless when it does not run.
   */
  async stop(): Promise<void> {
    this.stopped ??= this.halt().finally(() => (this.stopped = undefined));
    await this.stopped;
  }

  /** How the worker of this process is; undefined while it does not run. */
  health(): WorkerHealth | undefined {
    return this.worker?.health();
  }

  /** Stops for good: the application shuts down. @internal */
  async close(): Promise<void> {
    this.closed = true;
    await this.stop();
  }

  private async launch(): Promise<void> {
    const { stops } = this;
    const { engine, logger, startup, options, enhancers } = this.parts;
    try {
      if (options.worker === false) {
        throw new InvalidOptionError(
          'worker',
          'is false, so this process executes nothing. Leave it out, or set { autoStart: false } to start the worker when you like.',
        );
      }
      await startup.check();
      if (stops !== this.stops) return;
      const handlers = this.discover();
      const settings = this.resolve(options.worker, handlers);
      const registered = new Map(
        Array.from(handlers, ([kind, handler]) => [kind, toRegisteredHandler(handler, enhancers)]),
      );
      this.worker = new Worker(engine, registered, settings, logger);
      await this.worker.start();
      this.parts.workerStart.done();
    } catch (error) {
      this.started = undefined;
      await this.worker?.stop();
      this.worker = undefined;
      throw error;
    }
  }

  private async halt(): Promise<void> {
    this.stops++;
    await this.worker?.stop();
    await this.started?.catch(() => undefined); // its caller learns of it
    this.worker = this.started = undefined;
  }

  /** Once more: hooks of the application may have loaded modules since the check. */
  private discover(): ReadonlyMap<string, DiscoveredHandler> {
    const { handlers, listeners, problems } = this.parts.explorer.explore();
    const error = startupError(problems);
    if (error) throw error;
    this.parts.subscriptions.connect(listeners);
    return handlers;
  }

  private resolve(worker: WorkerOptions, handlers: ReadonlyMap<string, DiscoveredHandler>): ResolvedWorkerOptions {
    const { options, timers, logger } = this.parts;
    const queues = new Set([options.defaults.queue ?? DEFAULT_QUEUE]);
    for (const handler of handlers.values()) queues.add(handler.options.queue);
    const resolved = resolveWorkerOptions(worker, queues, {
      listen: options.listen && this.parts.engine.connections.hears,
      timers,
      version: PACKAGE_VERSION,
      ...(options.retention === undefined ? {} : { retention: resolveRetention(options.retention) }),
      ...(options.limits.maxPayloadBytes === undefined ? {} : { maxPayloadBytes: options.limits.maxPayloadBytes }),
    });
    for (const { where, options: own } of handlers.values()) {
      if (!resolved.queues.has(own.queue)) {
        logger.warn(`This worker does not serve the queue "${own.queue}" of ${where}: worker.queues does not name it.`);
      }
    }
    return resolved;
  }
}
