import type { Worker as Thread } from 'node:worker_threads';
import { startTimer, type Timer } from '../../model/timer.js';
import type { FromThread, ThreadData, ToThread } from './thread-messages.js';

const FIRST_RESTART_MS = 100;
const LONGEST_RESTART_MS = 10_000;
/** A thread that has ended so often without a renewal will never renew. */
const TRIES = 3;
/** How long the thread may take to end its connection. */
const STOP_MS = 1_000;

/** What becomes of the thread. `ever`: whether it, or one before it, has renewed. */
export interface ThreadEvents {
  /** It renews: for the first time since it was started, or again. */
  works(): void;
  /** It runs, but its renewals fail. */
  fails(reason: string, ever: boolean): void;
  /** It could not be started, or has ended. */
  ended(reason: string, ever: boolean): void;
  /** Everything else that it says. */
  hears(message: Exclude<FromThread, { type: 'works' | 'fails' }>): void;
}

/** Starts the lease thread, and starts it again when it ends. */
export class ThreadHost {
  private thread: Thread | undefined;
  private starting: Promise<void> = Promise.resolve();
  private restart: Timer | undefined;
  private failures = 0;
  private ever = false;
  private stopped = false;

  constructor(
    private readonly data: ThreadData,
    private readonly events: ThreadEvents,
  ) {}

  start(): void {
    this.starting = this.open();
  }

  tell(message: ToThread): void {
    this.thread?.postMessage(message);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.restart?.cancel();
    await this.starting;
    const { thread } = this;
    if (!thread) return;
    const ended = new Promise<void>((resolve) => thread.once('exit', () => resolve()));
    this.tell({ type: 'stop' });
    const limit = startTimer(STOP_MS, () => void thread.terminate());
    await ended;
    limit.cancel();
  }

  /** Never rejects. */
  private async open(): Promise<void> {
    try {
      // Loaded when it is needed: a test runner that makes CommonJS of this package need not know import.meta.
      const { startThreadFile } = await import(/* webpackMode: "eager" */ './thread-file.js');
      // The flags of the process are none of its business: an inspector or a loader would break it.
      if (!this.stopped) this.listen(startThreadFile({ workerData: this.data, execArgv: [] }));
    } catch (error) {
      this.end(messageOf(error));
    }
  }

  private listen(thread: Thread): void {
    this.thread = thread;
    let reason = 'it ended';
    thread.unref();
    thread.on('message', (message: FromThread) => this.hear(message));
    thread.on('error', (error) => (reason = messageOf(error)));
    thread.on('exit', () => {
      this.thread = undefined;
      this.end(reason);
    });
  }

  private hear(message: FromThread): void {
    if (message.type === 'fails') this.events.fails(message.reason, this.ever);
    else if (message.type === 'works') {
      this.ever = true;
      this.failures = 0;
      this.events.works();
    } else this.events.hears(message);
  }

  private end(reason: string): void {
    if (this.stopped) return;
    this.events.ended(reason, this.ever);
    if (++this.failures >= TRIES && !this.ever) return;
    const delayMs = Math.min(LONGEST_RESTART_MS, FIRST_RESTART_MS * 2 ** Math.min(this.failures - 1, 10));
    this.restart = startTimer(delayMs, () => this.start(), { unref: true });
  }
}

/** An error that comes from a thread may have lost everything but its code on the way. */
function messageOf(error: unknown): string {
  const { message, code } = error as { message?: unknown; code?: unknown };
  return String(message ?? code ?? error);
}
