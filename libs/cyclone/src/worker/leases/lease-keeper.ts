import { Worker as Thread } from 'node:worker_threads';
import { startTimer, type Timer } from '../../model/timer.js';
import type { Engine } from '../../store/engine.js';
import { monotonicMs } from '../clock.js';
import type { Execution } from '../execution.js';
import type { ProblemLog } from '../worker-logger.js';
import { Heart, type HeartOptions } from './heart.js';
import type { LeaseBook } from './lease-book.js';
import type { FromThread, ThreadData, ToThread } from './thread-messages.js';
import { toThreadOptions, type ThreadOptions } from './thread-options.js';

const FIRST_RESTART_MS = 100;
const LONGEST_RESTART_MS = 10_000;
/** How long the thread may take to end its connection. */
const STOP_MS = 1_000;

export interface KeeperTools {
  readonly engine: Engine;
  readonly book: LeaseBook;
  readonly problems: ProblemLog;
  /** The lease of this execution is no longer held. */
  gone(execution: Execution): void;
}

/** Keeps the leases of a worker alive, by a thread that it starts and starts again (R18). */
export class LeaseKeeper {
  private thread: Thread | undefined;
  /** Renews on this thread when the connection's options cannot cross to another. */
  private local: Heart | undefined;
  private restart: Timer | undefined;
  private restarts = 0;
  private stopped = false;
  private signalReady!: () => void;
  /** Resolves when leases can be renewed for the first time. */
  readonly ready = new Promise<void>((resolve) => (this.signalReady = resolve));
  private readonly renewed = new BigInt64Array(new SharedArrayBuffer(8));

  constructor(
    private readonly options: HeartOptions,
    private readonly tools: KeeperTools,
  ) {}

  /** When the last successful renewal was sent, on the monotonic clock; 0 when there was none. */
  get renewedAt(): number {
    return Number(Atomics.load(this.renewed, 0));
  }

  start(): void {
    const options = toThreadOptions(this.tools.engine.connections.clientOptions);
    if (options) this.startThread(options);
    else this.startHere();
  }

  /** Renews now: a run was cancelled, and a step of it may be ours (R28). */
  beatNow(): void {
    if (this.local) this.local.beatNow();
    else this.tell({ type: 'beat' });
  }

  /** Gives up leases that must have expired by now, because no renewal has succeeded for longer than their TTL (C8). */
  expire(): void {
    const { leaseTtlMs } = this.options;
    const now = monotonicMs();
    const { renewedAt } = this;
    for (const execution of this.tools.book.values()) {
      if (now - Math.max(execution.claimedAt, renewedAt) > leaseTtlMs) this.tools.gone(execution);
    }
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.restart?.cancel();
    await this.local?.stop();
    const { thread } = this;
    if (!thread) return;
    const ended = new Promise<void>((resolve) => thread.once('exit', () => resolve()));
    this.tell({ type: 'stop' });
    const limit = startTimer(STOP_MS, () => void thread.terminate());
    await ended;
    limit.cancel();
  }

  private startHere(): void {
    const { engine, book, problems } = this.tools;
    problems.report(
      'The connection options hold functions that no thread can be given, so leases are renewed on the main thread: ' +
        'a handler that blocks the event loop for longer than leaseTtl loses its lease',
    );
    const heart = new Heart(this.options, engine.store, {
      leases: () => {
        heart.report(book.takeProgress());
        return Promise.resolve(book.list());
      },
      connect: () => engine.connections.openClient('cyclone-leases'),
      gone: (leases) => this.onGone({ type: 'gone', leases }),
      renewed: (sentAt) => Atomics.store(this.renewed, 0, BigInt(sentAt)),
      problem: (message, error) => problems.report(message, error),
    });
    this.local = heart;
    heart.start();
    this.signalReady();
  }

  private startThread(options: ThreadOptions): void {
    if (this.stopped) return;
    const { engine, problems } = this.tools;
    const workerData: ThreadData = {
      owner: this.options.owner,
      schema: engine.schema,
      leaseTtlMs: this.options.leaseTtlMs,
      stallLimitMs: this.options.stallLimitMs,
      preparedStatements: this.options.preparedStatements,
      ...options,
      renewedAt: this.renewed.buffer as SharedArrayBuffer,
    };
    // The flags of the process are none of its business: an inspector or a loader would break it.
    const thread = new Thread(new URL('./lease-thread.js', import.meta.url), { workerData, execArgv: [] });
    this.thread = thread;
    thread.unref();
    thread.on('message', (message: FromThread) => this.hear(message));
    thread.on('error', (error) => problems.report('The lease thread failed and is started again', error));
    thread.on('exit', () => {
      if (this.thread === thread) this.thread = undefined;
      if (this.stopped) return;
      const delayMs = Math.min(LONGEST_RESTART_MS, FIRST_RESTART_MS * 2 ** Math.min(this.restarts++, 10));
      this.restart = startTimer(delayMs, () => this.startThread(options), { unref: true });
    });
  }

  private hear(message: FromThread): void {
    switch (message.type) {
      case 'ask':
        this.restarts = 0;
        this.signalReady();
        this.tell({ type: 'leases', leases: this.tools.book.list(), progress: this.tools.book.takeProgress() });
        break;
      case 'gone':
        this.onGone(message);
        break;
      case 'problem':
        this.tools.problems.report(message.message);
        break;
      case 'password':
        void this.tellPassword();
    }
  }

  private onGone({ leases }: Extract<FromThread, { type: 'gone' }>): void {
    for (const lease of leases) {
      const execution = this.tools.book.get(lease);
      if (execution) this.tools.gone(execution);
    }
  }

  private async tellPassword(): Promise<void> {
    try {
      const ask = this.tools.engine.connections.clientOptions['password'] as () => string | Promise<string>;
      this.tell({ type: 'password', password: await ask() });
    } catch (error) {
      this.tools.problems.report('The password function of the DataSource failed', error);
      this.tell({ type: 'password', error: 'The password function of the DataSource failed.' });
    }
  }

  private tell(message: ToThread): void {
    this.thread?.postMessage(message);
  }
}
