import type { QueueClaim } from '../store/engine-store.js';

interface Queue {
  readonly name: string;
  readonly size: number;
  /** The most that one call may claim, so that two lanes share the work. */
  readonly share: number;
  /** Running steps and reservations. */
  taken: number;
  /** Whether work may be due here: claims look only where it may. */
  hot: boolean;
  /** Whether to look although few slots are free. */
  ripe: boolean;
  /** Counts reasons to look, so that one that comes while a call is on its way is not lost. */
  reasons: number;
}

/** Slots that a call may fill, and what to know to judge its answer. */
export interface Reservation {
  readonly claims: readonly QueueClaim[];
  readonly reasons: readonly number[];
}

export const NO_RESERVATION: Reservation = { claims: [], reasons: [] };

/** An answer that filled at least this part of what it might suggests that there is more. */
const FULL = 0.25;
/** When at least this part of a queue's slots is free, a claim is worth its call; for fewer it waits a moment for more. */
const ROOMY = 0.25;

/** The slots of each queue: how many steps of it may run here at once, and where it pays to look for more. */
export class Slots {
  private readonly queues = new Map<string, Queue>();

  constructor(sizes: ReadonlyMap<string, number>, lanes: number) {
    for (const [name, size] of sizes) {
      const share = Math.ceil(size / lanes);
      this.queues.set(name, { name, size, share, taken: 0, hot: false, ripe: false, reasons: 0 });
    }
  }

  /** Says that work may be due in a queue. */
  heat(queue: string): void {
    const entry = this.queues.get(queue);
    if (!entry) return;
    entry.hot = true;
    entry.ripe = true;
    entry.reasons++;
  }

  /** Says that slots have been free for a moment where work may be due. */
  ripen(): void {
    for (const queue of this.queues.values()) queue.ripe ||= queue.hot;
  }

  /** Whether a claim is worth its call: `soon`, when a moment has passed or more slots are free. */
  get wanted(): 'now' | 'soon' | undefined {
    let soon = false;
    for (const { hot, ripe, taken, size } of this.queues.values()) {
      if (!hot || taken >= size) continue;
      if (ripe || size - taken >= size * ROOMY) return 'now';
      soon = true;
    }
    return soon ? 'soon' : undefined;
  }

  /**
   * Takes free slots for a call, so that all lanes together never claim more than is free.
   * @param everywhere look into cold queues too: a completion may have made work available there
   */
  reserve(everywhere: boolean): Reservation {
    const claims: QueueClaim[] = [];
    const reasons: number[] = [];
    for (const queue of this.queues.values()) {
      if (!queue.hot && !everywhere) continue;
      const slots = Math.min(queue.size - queue.taken, queue.share);
      if (slots > 0) {
        queue.taken += slots;
        queue.ripe = false;
        claims.push({ queue: queue.name, slots });
        reasons.push(queue.reasons);
      } else if (everywhere) {
        queue.hot = true; // nobody looked, so look when a slot comes free
      }
    }
    return claims.length === 0 ? NO_RESERVATION : { claims, reasons };
  }

  /**
   * Gives back what a call did not fill.
   * @param claimed how many steps came from each queue
   */
  settle(reservation: Reservation, claimed: ReadonlyMap<string, number>): void {
    reservation.claims.forEach(({ queue, slots }, index) => {
      const entry = this.queues.get(queue) as Queue;
      const count = claimed.get(queue) ?? 0;
      entry.taken -= slots - count;
      if (count > 0 && count >= slots * FULL) {
        entry.hot = true;
        entry.reasons++; // for another call that is on its way: it may find nothing but what this one holds
      } else if (entry.reasons === reservation.reasons[index]) entry.hot = false;
    });
  }

  /** Takes a slot for a step that was found, not claimed (C4); it may be one too many. */
  take(queue: string): void {
    const entry = this.queues.get(queue);
    if (entry) entry.taken++;
  }

  /** Frees the slot of a step. */
  free(queue: string): void {
    const entry = this.queues.get(queue);
    if (entry) entry.taken--;
  }

  /** Queue → its slots and how many of them are taken. */
  report(): Record<string, { readonly slots: number; readonly taken: number }> {
    return Object.fromEntries(
      Array.from(this.queues.values(), ({ name, size, taken }) => [name, { slots: size, taken }]),
    );
  }

  get names(): string[] {
    return [...this.queues.keys()];
  }
}
