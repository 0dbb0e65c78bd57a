import { createHash, randomBytes } from 'node:crypto';
import { startTimer, type Timer } from '../model/timer.js';
import type { Connections } from './connections.js';
import { statement } from './session.js';

/** At most one notification for each queue in this time: NOTIFY takes a global lock at commit (DESIGN §8). */
const GATHER_MS = 10;
/** A payload must stay under 8,000 bytes (FACTS); names of queues are at most 512. */
const MAX_ENTRIES = 10;

/** What one process tells the others: hints only, polling alone is correct. */
export interface Wakeup {
  /** Queues that got work. */
  readonly queues: readonly string[];
  /** Runs that were cancelled: whoever executes a step of one renews its leases now and notices (R28). */
  readonly cancelled: readonly string[];
  /** When the queues get the work, in milliseconds from now; only inside this process. @default now */
  readonly inMs?: number;
}

/** A wake-up on its way between processes. */
interface Notification extends Wakeup {
  /** The process that sent it, which hears it too and has acted already. */
  readonly from?: string;
}

export type WakeupListener = (wakeup: Wakeup) => void;

const NOTIFY = statement('notify', 'select pg_notify($1, $2)');

/** The channel of a schema's Cyclone. */
export function channelOf(schema: string): string {
  return `cyclone_${createHash('sha256').update(schema).digest('hex').slice(0, 16)}`;
}

/** Reads a notification; undefined when it is none of ours. */
export function parseWakeup(payload: string): Notification | undefined {
  try {
    const { queues, cancelled, from } = JSON.parse(payload) as Partial<Notification>;
    if (!Array.isArray(queues) || !Array.isArray(cancelled)) return undefined;
    return from === undefined ? { queues, cancelled } : { queues, cancelled, from };
  } catch {
    return undefined;
  }
}

/**
 * Wakes whoever waits for work: this process at once, the others by NOTIFY, gathered for 10 ms, sent after the commit and on a
 * connection of its own choice, never inside anybody's transaction.
 */
export class Notifier {
  private readonly listeners = new Set<WakeupListener>();
  private readonly queues = new Set<string>();
  private readonly cancelled = new Set<string>();
  private timer: Timer | undefined;
  private sending: Promise<void> | undefined;
  private readonly channel: string;
  private readonly id = randomBytes(6).toString('hex');

  /** @param onError told when a notification could not be sent: nothing is lost, the others find the work by polling */
  constructor(
    private readonly connections: Connections,
    schema: string,
    private readonly onError: (error: unknown) => void,
  ) {
    this.channel = channelOf(schema);
  }

  /** Hears of wake-ups made in this process; the answer stops it. */
  subscribe(listener: WakeupListener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Says that queues got work or runs were cancelled, after the commit that made it so. */
  wake(wakeup: Partial<Wakeup>): void {
    const whole: Wakeup = { queues: wakeup.queues ?? [], cancelled: wakeup.cancelled ?? [] };
    this.deliver(whole);
    this.tellOthers(whole);
  }

  /** Says that queues get work in so many milliseconds. Other processes see it when they poll. */
  expect(queues: readonly string[], inMs: number): void {
    this.deliver({ queues, cancelled: [], inMs });
  }

  /** Wakes the others only: work that this process leaves for them. */
  tellOthers({ queues, cancelled }: Wakeup): void {
    for (const queue of queues) this.queues.add(queue);
    for (const run of cancelled) this.cancelled.add(run);
    this.gather();
  }

  /** Hands a wake-up to the listeners of this process only: it came from another one. */
  deliver(wakeup: Wakeup): void {
    for (const listener of this.listeners) listener(wakeup);
  }

  /** Takes a notification from the database: `deliver`, unless this process has sent it. */
  receive(payload: string): void {
    const notification = parseWakeup(payload);
    if (notification && notification.from !== this.id) this.deliver(notification);
  }

  /** Sends what has been gathered and waits for it. */
  async close(): Promise<void> {
    await this.sending;
    this.send();
    await this.sending;
  }

  /** Sends in a moment, or after what is being sent: while the pool is used up, nothing piles up. */
  private gather(): void {
    if (this.queues.size + this.cancelled.size === 0 || this.sending) return;
    this.timer ??= startTimer(GATHER_MS, () => this.send(), { unref: true });
  }

  private send(): void {
    this.timer?.cancel();
    this.timer = undefined;
    if (this.queues.size + this.cancelled.size === 0) return;
    const queues = [...this.queues];
    const cancelled = [...this.cancelled];
    this.queues.clear();
    this.cancelled.clear();
    const payloads: string[] = [];
    for (let i = 0; i < Math.max(queues.length, cancelled.length); i += MAX_ENTRIES) {
      const wakeup: Notification = {
        from: this.id,
        queues: queues.slice(i, i + MAX_ENTRIES),
        cancelled: cancelled.slice(i, i + MAX_ENTRIES),
      };
      payloads.push(JSON.stringify(wakeup));
    }
    this.sending = this.connections
      .use(async (session) => {
        for (const payload of payloads) await session.rows(NOTIFY, [this.channel, payload]);
      }, 'notification of other processes')
      .catch(this.onError)
      .finally(() => {
        this.sending = undefined;
        this.gather();
      });
  }
}
