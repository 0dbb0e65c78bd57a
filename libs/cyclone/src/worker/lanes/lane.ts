import type { EngineRow } from '../../store/engine-row.js';
import { isAnswer, isRefusal } from '../../store/database-fault.js';
import type { Session } from '../../store/session.js';
import { describeFailure } from '../../model/failure.js';
import { sleep, startTimer, type Timer } from '../../model/timer.js';
import { monotonicMs } from '../clock.js';
import type { Execution } from '../execution.js';
import { NO_RESERVATION, type Reservation } from '../slots.js';
import { decideDoubt, type Doubt } from './adoption.js';
import { LaneConnection } from './lane-connection.js';
import type { LaneHost } from './lane-host.js';
import { Outbox } from './outbox.js';
import { remedyOf } from './remedy.js';

/** After so many misses a step is settled alone (C2). */
const MAX_MISSES = 3;
/** How long steps of locked runs wait when nothing else makes a call. */
const PARK_MS = 5;
const FIRST_REST_MS = 50;
const LONGEST_REST_MS = 5_000;
/** An input that one call may claim is bounded by the same number of bytes as the outputs that it carries (C13). */
const MAX_CLAIM_BYTES = 4 * 1024 * 1024;

const NO_CLAIMS: ReadonlyMap<string, number> = new Map();

interface Chore {
  run(session: Session): Promise<void>;
  fail(error: unknown): void;
}

/**
 * A reserved connection that tells the database what came of executions and claims new ones, in one call (DESIGN §8).
 * A call starts at once when none is under way and there is something to do: an idle worker has no added latency, a busy one
 * batches by itself.
 */
export class Lane {
  private readonly completions = new Outbox();
  private readonly settlements = new Outbox();
  /** Members of a batch that failed: they go one by one, so that one bad row harms only itself. */
  private suspects: Execution[] = [];
  /** Steps whose run was locked: they join the next call. */
  private parked: Execution[] = [];
  private parkTimer: Timer | undefined;
  private readonly doubts: Doubt[] = [];
  private readonly chores: Chore[] = [];
  private connection: LaneConnection | undefined;
  private connections = 0;
  private failures = 0;
  private lastCallHadWork = false;
  private scheduled = false;
  private pumping: Promise<void> | undefined;
  /** On `performance.now()`, while a call waits for its answer. */
  callSentAt: number | undefined;
  private connectTrouble: string | undefined;
  private callTrouble: string | undefined;
  private readonly closing = new AbortController();

  constructor(
    readonly index: number,
    private readonly host: LaneHost,
  ) {}

  /** Whether it could take on something at once. */
  get isIdle(): boolean {
    return this.pumping === undefined && !this.scheduled;
  }

  /** When the present connection was made, on `performance.now()`; undefined while there is none. */
  get connectedAt(): number | undefined {
    return this.connection?.isLost ? undefined : this.connection?.connectedAt;
  }

  /** Takes an execution whose outcome is known: `settlement`, or a completion when it has none. */
  hand(execution: Execution): void {
    (execution.settlement ? this.settlements : this.completions).push(execution);
    this.kick();
  }

  /** Runs a call of the housekeeping on the lane's connection, between two calls of its own. Rejects with the call's error. */
  async chore<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.chores.push({ run: (session) => work(session).then(resolve), fail: reject });
      this.kick();
    });
  }

  /** Why it can neither claim nor complete now, and what to do; undefined when nothing is known to be wrong. */
  get trouble(): string | undefined {
    return this.connectTrouble ?? this.callTrouble;
  }

  /** Finds out whether its trouble is over: an idle lane would make no call by itself. */
  recheck(): void {
    if (this.connectTrouble !== undefined && this.chores.length === 0) {
      this.chore(() => Promise.resolve()).catch(() => undefined); // the worker stops
    } else if (this.callTrouble !== undefined) {
      for (const queue of this.host.slots.names) this.host.slots.heat(queue);
      this.kick();
    }
  }

  /** Takes over the decision on a call whose answer was lost (C4). */
  doubt(doubt: Doubt): void {
    this.doubts.push(doubt);
    this.kick();
  }

  /** Sees to it that the lane looks for work; many kicks of one turn of the event loop make one call. */
  kick(): void {
    if (this.scheduled || this.pumping || this.closing.signal.aborted) return;
    this.scheduled = true;
    this.host.inContext(process.nextTick, this.startPumping);
  }

  /** Cuts the connection when a call has been waiting for its answer for too long. */
  watch(limitMs: number): void {
    if (this.callSentAt !== undefined && performance.now() - this.callSentAt > limitMs) this.connection?.cut();
  }

  /**
   * Ends the lane after the call under way, which is cut after `limitMs`; what it still holds is left to the expiry of its
   * leases.
   */
  async close(limitMs: number): Promise<void> {
    this.closing.abort();
    this.parkTimer?.cancel();
    const limit = startTimer(limitMs, () => this.connection?.cut());
    await this.pumping;
    for (const chore of this.chores.splice(0)) chore.fail(new Error('The worker has stopped.'));
    await this.connection?.close();
    limit.cancel();
    this.connection = undefined;
  }

  private get hasWork(): boolean {
    return (
      !this.closing.signal.aborted &&
      (this.completions.size > 0 ||
        this.settlements.size > 0 ||
        this.chores.length > 0 ||
        this.suspects.length > 0 ||
        this.doubts.length > 0 ||
        (this.host.claiming && this.host.slots.wanted === 'now'))
    );
  }

  private readonly startPumping = (): void => {
    this.scheduled = false;
    if (this.hasWork) this.pumping = this.pump();
  };

  private async pump(): Promise<void> {
    while (this.hasWork) {
      try {
        const connection = await this.connected();
        if (connection && this.hasWork) await this.work(connection); // it may have come after the end
      } catch (error) {
        this.host.problems.report('A lane failed', error);
        await this.rest();
      }
    }
    this.pumping = undefined;
  }

  private async work(connection: LaneConnection): Promise<void> {
    for (let closed = this.host.gate.closed; closed; closed = this.host.gate.closed) await closed;
    if (this.doubts.length > 0) return this.adopt(connection);
    const chore = this.chores.shift();
    if (chore) return this.run(chore, connection);
    if (this.settlements.size > 0) return this.settle(connection);
    return this.flush(connection);
  }

  private async connected(): Promise<LaneConnection | undefined> {
    if (this.connection?.isLost) await this.drop();
    if (this.connection) return this.connection;
    try {
      this.connection = await LaneConnection.open(
        this.host.engine.connections,
        `cyclone-lane:${this.host.ownerHash}:${this.index}:${++this.connections}`,
      );
      this.connectTrouble = undefined;
      return this.connection;
    } catch (error) {
      this.connectTrouble = this.report('A lane of the worker has no connection', error);
      await this.rest();
      return undefined;
    }
  }

  private async drop(): Promise<void> {
    const { connection } = this;
    this.connection = undefined;
    await connection?.close();
  }

  private succeeded(): void {
    this.failures = 0;
    this.callTrouble = undefined;
  }

  private report(what: string, error: unknown): string {
    this.host.problems.report(what, error);
    return `${what}: ${describeFailure(error).error} ${remedyOf(error)}`;
  }

  /** Waits longer from failure to failure. */
  private async rest(): Promise<void> {
    const ms = Math.min(LONGEST_REST_MS, FIRST_REST_MS * 2 ** Math.min(this.failures++, 10));
    await sleep(ms * (0.5 + Math.random() / 2), { signal: this.closing.signal });
  }

  private async flush(connection: LaneConnection): Promise<void> {
    const { host } = this;
    const suspect = this.suspects.shift();
    if (!suspect) this.unpark();
    const batch = suspect ? [suspect] : this.completions.take();
    const reservation = host.claiming && !suspect ? host.slots.reserve(batch.length > 0) : NO_RESERVATION;
    if (batch.length === 0 && reservation.claims.length === 0) return;

    let sentAt = 0;
    host.gate.enter();
    try {
      if (batch.length > 0 || this.lastCallHadWork) await connection.refreshPlans();
      sentAt = monotonicMs();
      this.callSentAt = performance.now();
      const rows = await host.engine.store.flush(connection.session, {
        owner: host.owner,
        leaseMs: host.leaseTtlMs,
        completions: batch,
        queues: reservation.claims,
        kinds: host.kinds,
        maxBytes: MAX_CLAIM_BYTES,
      });
      this.callSentAt = undefined;
      this.succeeded();
      this.flushed(rows, batch, reservation, sentAt);
    } catch (error) {
      this.callSentAt = undefined;
      if (isAnswer(error)) {
        host.slots.settle(reservation, NO_CLAIMS);
        await this.flushFailed(error, batch);
      } else {
        await this.lose(connection, { executions: batch, reservation, sentAt }, error);
      }
    } finally {
      host.gate.leave();
    }
  }

  /** Reads the answer of a flush. `batch` empty: only claims. */
  private flushed(
    rows: readonly EngineRow[],
    batch: readonly Execution[],
    reservation: Reservation,
    sentAt: number,
  ): void {
    const { host } = this;
    const claimed: EngineRow[] = [];
    const others: EngineRow[] = [];
    const counts = new Map<string, number>();
    for (const row of rows) {
      if (row.event === 'claimed') {
        claimed.push(row);
        counts.set(row.queue, (counts.get(row.queue) ?? 0) + 1);
      } else if (!this.judge(row)) others.push(row);
    }
    this.lastCallHadWork = claimed.length > 0;
    for (const execution of batch) this.conclude(execution, () => host.completed(execution));
    host.aftermath.of(others);
    host.slots.settle(reservation, counts);
    if (claimed.length > 0) host.engine.events.emitRows(claimed, host.owner);
    for (const row of claimed) host.execute(row, sentAt);
    host.wake();
  }

  private async flushFailed(error: unknown, batch: readonly Execution[]): Promise<void> {
    const { host } = this;
    const [first] = batch;
    if (!first) {
      this.callTrouble = this.report('Steps could not be claimed', error);
      return this.rest();
    }
    if (batch.length > 1) {
      this.suspects.push(...batch);
      return;
    }
    host.problems.report(`Step ${first.key} could not be completed`, error);
    if (!isRefusal(error)) {
      this.callTrouble = this.report('Steps could not be completed', error);
      this.completions.push(first);
      return this.rest();
    }
    host.refuse(first, error);
  }

  private async settle(connection: LaneConnection): Promise<void> {
    const { host } = this;
    const batch = this.settlements.take();
    const sentAt = monotonicMs();
    try {
      this.callSentAt = performance.now();
      const settlements = batch.flatMap(({ settlement }) => settlement ?? []);
      const rows = await host.engine.store.settle(connection.session, host.owner, settlements, host.maxReclaims, null);
      this.callSentAt = undefined;
      this.succeeded();
      this.settled(rows, batch);
    } catch (error) {
      this.callSentAt = undefined;
      if (!isAnswer(error)) return this.lose(connection, { executions: batch, reservation: undefined, sentAt }, error);
      await this.settleFailed(error, batch);
    }
  }

  private settled(rows: readonly EngineRow[], batch: readonly Execution[]): void {
    const others = rows.filter((row) => !this.judge(row));
    for (const execution of batch) this.conclude(execution, () => this.host.settled(execution));
    this.host.aftermath.of(others);
  }

  private async settleFailed(error: unknown, batch: readonly Execution[]): Promise<void> {
    for (const execution of batch) {
      // In a batch the others may be innocent: alone they show it, waiting for their run if need be.
      if (batch.length > 1 || !isRefusal(error)) this.host.lonely.add(execution, this);
      else this.host.giveUp(execution, error);
    }
    const trouble = this.report('Failures could not be settled', error);
    if (isRefusal(error)) return;
    this.callTrouble = trouble;
    await this.rest();
  }

  /** The answer to one execution that another connection has settled (C2). */
  settledAlone(rows: readonly EngineRow[], execution: Execution): void {
    if (execution.settlement) this.settled(rows, [execution]);
    else this.flushed(rows, [execution], NO_RESERVATION, 0);
  }

  /** Notes what an answer says about an execution; false for rows that say nothing of that kind. */
  private judge(row: EngineRow): boolean {
    if (row.event !== 'busy' && row.event !== 'lease_lost') return false;
    const execution = this.host.book.get(row);
    if (execution) execution.verdict = row.event === 'busy' ? 'busy' : 'lost';
    return true;
  }

  private conclude(execution: Execution, done: () => void): void {
    const { verdict } = execution;
    execution.verdict = undefined;
    if (verdict === undefined) done();
    else if (verdict === 'lost') this.host.lost(execution);
    else if (++execution.misses >= MAX_MISSES) this.host.lonely.add(execution, this);
    else this.park(execution);
  }

  private park(execution: Execution): void {
    this.parked.push(execution);
    this.parkTimer ??= startTimer(PARK_MS, () => this.unpark());
  }

  private unpark(): void {
    this.parkTimer?.cancel();
    this.parkTimer = undefined;
    if (this.parked.length === 0) return;
    for (const execution of this.parked.splice(0)) this.hand(execution);
  }

  private async run(chore: Chore, connection: LaneConnection): Promise<void> {
    try {
      this.callSentAt = performance.now();
      await chore.run(connection.session);
    } catch (error) {
      chore.fail(error);
      if (!isAnswer(error)) await this.drop();
    } finally {
      this.callSentAt = undefined;
    }
  }

  /** A call's answer is lost: whatever it did has to be found out before anything else (C4). */
  private async lose(
    connection: LaneConnection,
    lost: Pick<Doubt, 'executions' | 'reservation' | 'sentAt'>,
    error: unknown,
  ): Promise<void> {
    this.host.problems.report('A connection was lost during a call; the worker finds out what became of it', error);
    this.doubts.push({ session: connection.name, ...lost });
    await this.drop();
  }

  private async adopt(connection: LaneConnection): Promise<void> {
    const doubt = this.doubts[0] as Doubt;
    try {
      const decided = await this.host.gate.alone(() => decideDoubt(this.host, connection.session, doubt));
      if (decided === 'wait') return await this.rest();
      this.doubts.shift();
      this.succeeded();
      for (const execution of decided.unsettled) this.hand(execution);
    } catch (error) {
      this.host.problems.report('What became of a lost call could not be found out yet', error);
      if (!isAnswer(error)) await this.drop();
      await this.rest();
    }
  }
}
