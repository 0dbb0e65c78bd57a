import { startTimer, type Timer } from '../model/timer.js';

/** Times that lie so close together are one. */
const GRAIN_MS = 10;
/** Beyond so many times only one that is earlier than all of them is remembered: ticks tell of the others when it is time. */
const MAX_TIMES = 1_000;
/** The platform's timers may fire a little early, and a look that comes too early finds nothing. */
const MARGIN_MS = 1;

/**
 * When work that this process knows of comes due: what it put back with a delay, what it submitted for later, and what a tick has seen.
 * A hint only, as a notification is: without it the work is found by the next poll. One timer, for the earliest.
 */
export class DueTimes {
  /** The queues that have work at a time, by time in grains of `performance.now()`. */
  private readonly times = new Map<number, Set<string>>();
  private timer: Timer | undefined;
  private armedFor = Infinity;

  /** @param onDue told of queues that have work now */
  constructor(private readonly onDue: (queues: readonly string[]) => void) {}

  /** A queue has work in so many milliseconds. */
  expect(queue: string, inMs: number): void {
    const grain = Math.ceil((performance.now() + inMs + MARGIN_MS) / GRAIN_MS);
    const queues = this.times.get(grain);
    if (queues) queues.add(queue);
    else if (this.times.size < MAX_TIMES || grain < this.armedFor) this.times.set(grain, new Set([queue]));
    else return;
    if (grain < this.armedFor) this.arm(grain);
  }

  stop(): void {
    this.timer?.cancel();
    this.times.clear();
  }

  private arm(grain: number): void {
    this.timer?.cancel();
    this.armedFor = grain;
    this.timer = startTimer(grain * GRAIN_MS - performance.now(), () => this.fire(), { unref: true });
  }

  private fire(): void {
    const now = Math.max(this.armedFor, Math.floor(performance.now() / GRAIN_MS));
    this.armedFor = Infinity;
    const due = new Set<string>();
    let next = Infinity;
    for (const [grain, queues] of this.times) {
      if (grain > now) next = Math.min(next, grain);
      else {
        this.times.delete(grain);
        for (const queue of queues) due.add(queue);
      }
    }
    if (next < Infinity) this.arm(next);
    this.onDue([...due]);
  }
}
