import type { Engine } from '../../store/engine.js';
import { monotonicMs } from '../clock.js';
import type { Execution } from '../execution.js';
import type { ProblemLog } from '../worker-logger.js';
import { Heart, type HeartOptions } from './heart.js';
import type { LeaseBook } from './lease-book.js';
import { ThreadHost, type ThreadEvents } from './thread-host.js';
import { LEASE_CONNECTION, type FromThread } from './thread-messages.js';
import { toThreadOptions } from './thread-options.js';

export interface KeeperTools {
  readonly engine: Engine;
  readonly book: LeaseBook;
  readonly problems: ProblemLog;
  /** The lease of this execution is no longer held. */
  gone(execution: Execution): void;
  /** Leases can be renewed: for the first time, or again. */
  works(): void;
}

/**
 * Who renews leases. `thread`: whatever handlers do. `main thread`: not while a handler blocks the event loop. `none`: nobody can, and
 * nothing is claimed (R41). `reason` says why it is not the thread, and what to do about it.
 */
export type RenewalState =
  { readonly by: 'thread'; readonly reason: null } | { readonly by: 'main thread' | 'none'; readonly reason: string };

/** For the likeliest reason why a thread never runs. */
const REMEDY =
  'An application that is bundled whole needs nestjs-cyclone/lease-thread as lease-thread.js beside the bundle: docs/bundling.md';

/**
 * Keeps the leases of a worker alive (R18): by a thread, and on the main thread where and while there is no thread that can (R41). A
 * thread that has renewed once is trusted until it ends: what fails it then is the database, which fails the main thread as well.
 */
export class LeaseKeeper {
  private readonly renewed = new BigInt64Array(new SharedArrayBuffer(8));
  private readonly thread: ThreadHost | undefined;
  private local: Heart | undefined;
  private threadWorks = false;
  private localWorks = false;
  /** Why the thread does not renew. */
  private withoutThread = 'it has not renewed yet';
  /** Why nothing is renewed. */
  private failure = 'no lease could be renewed yet';
  private said: RenewalState['by'] = 'none';
  private stopped = false;
  private readonly leaving: Promise<void>[] = [];

  constructor(
    private readonly options: HeartOptions,
    private readonly tools: KeeperTools,
  ) {
    const { engine } = tools;
    const threadOptions = toThreadOptions(engine.connections.clientOptions);
    if (!threadOptions) {
      this.withoutThread = 'the connection options hold functions that no thread can be given';
      return;
    }
    const { owner, leaseTtlMs, stallLimitMs, preparedStatements } = options;
    const renewedAt = this.renewed.buffer as SharedArrayBuffer;
    const own = { owner, schema: engine.schema, leaseTtlMs, stallLimitMs, preparedStatements, renewedAt };
    this.thread = new ThreadHost({ ...own, ...threadOptions }, this.threadEvents());
  }

  /** When the last successful renewal was sent, on the monotonic clock; 0 when there was none. */
  get renewedAt(): number {
    return Number(Atomics.load(this.renewed, 0));
  }

  get state(): RenewalState {
    if (this.threadWorks) return { by: 'thread', reason: null };
    if (this.localWorks) {
      const { withoutThread } = this;
      return {
        by: 'main thread',
        reason: `Leases are renewed on the main thread, where a handler that blocks the event loop for longer than leaseTtl loses its lease: ${withoutThread}`,
      };
    }
    return { by: 'none', reason: `Leases cannot be renewed, and nothing is claimed: ${this.failure}` };
  }

  start(): void {
    if (this.thread) this.thread.start();
    else this.renewHere();
  }

  /** Renews now: a run was cancelled, and a step of it may be ours (R28). */
  beatNow(): void {
    this.local?.beatNow();
    this.thread?.tell({ type: 'beat' });
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
    this.renewElsewhere();
    await Promise.all([this.leaving, this.thread?.stop()].flat());
  }

  private threadEvents(): ThreadEvents {
    return {
      works: () => {
        this.threadWorks = true;
        this.renewElsewhere();
        this.changed();
      },
      fails: (reason, ever) => {
        this.threadWorks = false;
        this.failure = reason;
        if (ever) this.changed();
        else this.renewHere(`the lease thread cannot renew (${reason})`);
      },
      ended: (reason, ever) => {
        this.threadWorks = false;
        this.failure = reason;
        this.renewHere(`the lease thread does not run (${reason})${ever ? '' : `. ${REMEDY}`}`);
      },
      hears: (message) => this.hear(message),
    };
  }

  private renewHere(why = this.withoutThread): void {
    this.withoutThread = why;
    if (this.local || this.stopped) return;
    const { engine, book, problems } = this.tools;
    const heart: Heart = new Heart(this.options, engine.store, {
      leases: () => {
        heart.report(book.takeProgress());
        return Promise.resolve(book.list());
      },
      connect: (limitMs) => engine.connections.openClient(LEASE_CONNECTION, limitMs),
      gone: (leases) => this.onGone({ type: 'gone', leases }),
      renewed: (sentAt) => {
        Atomics.store(this.renewed, 0, BigInt(sentAt));
        if (this.local !== heart || this.localWorks) return;
        this.localWorks = true;
        this.changed();
      },
      failed: (error) => {
        if (this.local !== heart) return;
        this.localWorks = false;
        this.failure = String(error);
        this.changed();
      },
      problem: (message, error) => problems.report(message, error),
    });
    this.local = heart;
    heart.start();
  }

  private renewElsewhere(): void {
    if (this.local) this.leaving.push(this.local.stop());
    this.local = undefined;
    this.localWorks = false;
  }

  /** Says when it is not the thread that renews, and each failure. */
  private changed(): void {
    const { by, reason } = this.state;
    if (by === 'none') this.tools.problems.report(reason);
    else if (by === 'main thread' && by !== this.said) this.tools.problems.notice(reason);
    this.said = by;
    if (by !== 'none') this.tools.works();
  }

  private hear(message: Parameters<ThreadEvents['hears']>[0]): void {
    switch (message.type) {
      case 'ask':
        this.thread?.tell({
          type: 'leases',
          leases: this.tools.book.list(),
          progress: this.tools.book.takeProgress(),
        });
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
      this.thread?.tell({ type: 'password', password: await ask() });
    } catch (error) {
      this.tools.problems.report('The password function of the DataSource failed', error);
      this.thread?.tell({ type: 'password', error: 'The password function of the DataSource failed.' });
    }
  }
}
