import { NoConnectionError } from '../../model/errors/index.js';
import { startTimer, type Timer } from '../../model/timer.js';
import { LONGEST_WAIT_MS, REPORTED_WAIT_MS } from '../../store/connection-wait.js';
import type { Connections, HeldSession } from '../../store/connections.js';
import type { ProblemLog } from '../worker-logger.js';
import { Place, type Customer } from './connection-place.js';
import { ReservedConnection } from './reserved-connection.js';

/** How often the line is looked at while somebody stands in it. */
const LOOK_MS = 1_000;
/** When the line has not moved for its bound, one after the other leaves it: what the first gives back may serve the rest. */
const NEXT_LEAVES_MS = 500;
/** A worker's row names no more of those who wait. */
const MOST_NAMED = 100;

export interface LineOptions {
  readonly connections: Connections;
  readonly problems: ProblemLog;
  /** How many completion transactions may be open at once. */
  readonly capacity: number;
  /** Connections of the worker's lanes, for the message. */
  readonly lanes: number;
}

/**
 * Where completion transactions get their connections, first come, first served. They never take the last connection of the pool: a
 * handler inside one may need a second. One connection is kept in reserve for them: handlers that hold a connection of their own while
 * they ask for the completion transaction would else wait for each other for ever (C14).
 *
 * What waits is reported after 5 s; when nothing has come and gone for 30 s, those in front leave the line with an error (R42).
 */
export class ConnectionLine {
  private line: Place[] = [];
  /** Requests at the pool that are under way. */
  private asked = 0;
  /** Connections of the pool that are out, without the reserved one. */
  private out = 0;
  private movedAt = 0;
  private look: Timer | undefined;
  private closed = false;
  private readonly reserved: ReservedConnection;

  constructor(private readonly options: LineOptions) {
    this.reserved = new ReservedConnection(options.connections, (error) => {
      this.failed(error);
      this.serve();
    });
  }

  /** Gets the reserved connection, before a handler runs: handlers may take all others. */
  prepare(): void {
    this.reserved.open();
  }

  /** Takes a place in the line, and later a connection. */
  enter(customer: Customer): Place {
    const place = new Place(customer, () => this.onLeft(place));
    if (this.line.length === 0) this.movedAt = performance.now();
    this.line.push(place);
    this.serve();
    if (this.line.length > 0) this.watch();
    return place;
  }

  /** Steps whose wait was reported, and since when they wait, in epoch milliseconds; undefined when there is none. */
  waiting(): Readonly<Record<string, number>> | undefined {
    const late = this.line.filter(({ reported }) => reported).slice(0, MOST_NAMED);
    if (late.length === 0) return undefined;
    const zero = Date.now() - performance.now();
    return Object.fromEntries(late.map(({ customer, since }) => [customer.key, Math.round(zero + since)]));
  }

  async close(): Promise<void> {
    this.closed = true;
    this.look?.cancel();
    await this.reserved.close();
  }

  private serve(): void {
    while (this.line.length > 0) {
      const reserved = this.reserved.take();
      if (!reserved) break;
      this.give(reserved);
    }
    const { capacity } = this.options;
    while (!this.closed && this.asked < this.line.length && this.asked + this.out < capacity - 1) void this.ask();
  }

  private async ask(): Promise<void> {
    this.asked++;
    try {
      const held = await this.options.connections.hold('completion transaction', true);
      if (this.line.length === 0) return await held.release();
      this.out++;
      this.give({
        session: held.session,
        release: async (broken) => {
          this.out--;
          await held.release(broken).finally(() => this.moved());
        },
      });
    } catch (error) {
      this.failed(error);
    } finally {
      this.asked--;
      this.serve();
    }
  }

  private give(held: HeldSession): void {
    this.moved();
    (this.line.shift() as Place).give(held);
  }

  /** While the pool is used up, the line goes on waiting: for a connection that comes back, or for its own bound. */
  private failed(error: unknown): void {
    if (error !== undefined && !NoConnectionError.is(error)) this.refuseFirst(error);
  }

  private refuseFirst(error: unknown): void {
    this.line.shift()?.refuse(error);
  }

  private onLeft(place: Place): void {
    this.line = this.line.filter((other) => other !== place);
  }

  private moved(): void {
    this.movedAt = performance.now();
    if (!this.closed) this.serve();
  }

  private watch(): void {
    this.look ??= startTimer(
      LOOK_MS,
      () => {
        this.look = undefined;
        const now = performance.now();
        this.report(now);
        this.expire(now);
        if (this.line.length > 0 && !this.closed) this.watch();
      },
      { unref: true },
    );
  }

  private report(now: number): void {
    const { lanes, connections, problems } = this.options;
    const late = this.line.filter(({ since, reported }) => !reported && now - since >= REPORTED_WAIT_MS);
    for (const place of late) place.reported = true;
    const [first] = late;
    if (!first) return;
    const others = this.line.length - 1;
    problems.report(
      `Step ${first.customer.key} of kind "${first.customer.kind}" has waited ${REPORTED_WAIT_MS / 1000} s for a connection for its ` +
        `completion transaction${others > 0 ? `, and ${others} more wait` : ''}: of the DataSource's pool of ${connections.poolSize}, ` +
        `${lanes} are the worker's own and ${this.out + this.reserved.inUse} are in completion transactions. Set poolSize to ` +
        `${lanes + 1} more than slots × connections that a handler holds at once, or lower worker.queues`,
    );
  }

  private expire(now: number): void {
    const limitMs = LONGEST_WAIT_MS;
    const [first] = this.line;
    if (!first || now - first.since < limitMs || now - this.movedAt < limitMs) return;
    this.movedAt = now - limitMs + NEXT_LEAVES_MS;
    this.refuseFirst(
      new NoConnectionError(`completion transaction of step ${first.customer.key}`, now - first.since, 'pool'),
    );
  }
}
