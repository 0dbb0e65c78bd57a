import { sleep, startTimer } from '../../model/timer.js';
import { isAnswer } from '../../store/database-fault.js';
import type { EngineStore, MissedBeat, ProgressBeat } from '../../store/engine-store.js';
import type { Lease } from '../../store/lease.js';
import { destroyClient, type RawClient } from '../../store/raw-client.js';
import { keepSession } from '../../store/session-commands.js';
import { Session } from '../../store/session.js';
import { monotonicMs } from '../clock.js';
import { LEASE_CONNECTION } from './thread-messages.js';
import { ProgressReports, type ProgressReport } from './progress-reports.js';

/** The world of a heart: the lease thread, or the main thread where a thread is not possible. */
export interface HeartBody {
  /** Every lease that is held; undefined when the main thread does not answer in `limitMs`. */
  leases(limitMs: number): Promise<readonly Lease[] | undefined>;
  /** Opens a connection for nothing but renewals; rejects when there is none within `limitMs`. */
  connect(limitMs: number): Promise<RawClient>;
  /** Leases that are no longer held. */
  gone(leases: readonly Lease[]): void;
  /** A renewal that was sent at `sentAt` (monotonic) has succeeded. */
  renewed(sentAt: number): void;
  /** Nothing can be renewed, until `renewed` is called again: nothing may be claimed meanwhile (R41). */
  failed(error: unknown): void;
  problem(message: string, error: unknown): void;
}

export interface HeartOptions {
  readonly owner: string;
  readonly leaseTtlMs: number;
  readonly stallLimitMs: number;
  readonly preparedStatements: boolean;
}

/** Beats in a TTL. */
const BEATS = 3;
/** How much sooner than usual the next beat comes after one that did not renew everything. */
const HASTE = 4;
/** Longest pause after one that failed: no step is claimed until a renewal succeeds. */
const LONGEST_PAUSE_MS = 1_000;
/** Longest wait for the main thread's list. */
const ASK_MS = 1_000;
/** A connection that is not there by now will not come. */
const LONGEST_CONNECT_MS = 60_000;

/**
 * Renews the leases of a worker every third of their TTL, in one statement (R18). By list while the main thread answers; by owner
 * while it is silent, because a claim's answer may lie there unread (C8); not at all after the stall limit. The first beat, and each
 * after one that failed, renews even when there is nothing to renew: it shows whether leases can be renewed (R41).
 */
export class Heart {
  private client: RawClient | undefined;
  private session: Session | undefined;
  /** Whether the last beat that touched the database succeeded. */
  private works = false;
  private answeredAt = monotonicMs();
  private readonly stopping = new AbortController();
  private hurry = new AbortController();
  private running: Promise<void> = Promise.resolve();
  private readonly reports = new ProgressReports();

  constructor(
    private readonly options: HeartOptions,
    private readonly store: EngineStore,
    private readonly body: HeartBody,
  ) {}

  start(): void {
    this.running = this.run();
  }

  /** Takes what handlers reported; the next beat carries it. */
  report(progress: readonly ProgressReport[]): void {
    this.reports.add(progress);
  }

  /** Beats now instead of in a while (R28). */
  beatNow(): void {
    this.hurry.abort();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    this.hurry.abort();
    if (this.client) destroyClient(this.client);
    await this.running;
  }

  private async run(): Promise<void> {
    const periodMs = this.options.leaseTtlMs / BEATS;
    const hasteMs = periodMs / HASTE;
    while (!this.stopping.signal.aborted) {
      const startedAt = monotonicMs();
      let pauseMs = Math.min(hasteMs, LONGEST_PAUSE_MS);
      try {
        pauseMs = (await this.beat()) ? periodMs : hasteMs;
      } catch (error) {
        if (this.stopping.signal.aborted) return;
        this.works = false;
        this.disconnect();
        this.body.failed(error);
      }
      const leftMs = pauseMs - (monotonicMs() - startedAt);
      await sleep(Math.max(leftMs, pauseMs === periodMs ? 0 : pauseMs / 2), { signal: this.hurry.signal });
      this.hurry = new AbortController();
    }
  }

  /** False when a lease was locked and not renewed. */
  private async beat(): Promise<boolean> {
    const { leaseTtlMs, stallLimitMs } = this.options;
    const leases = await this.body.leases(Math.min(ASK_MS, leaseTtlMs / BEATS / 2));
    const now = monotonicMs();
    if (leases) {
      this.answeredAt = now;
      if (leases.length === 0 && this.works) return true;
    } else if (now - this.answeredAt > stallLimitMs) return true;

    const session = (this.session ??= await this.connect());
    // A connection that does not answer is useless long before the TTL.
    const client = this.client as RawClient;
    const limit = startTimer(leaseTtlMs / BEATS, () => destroyClient(client));
    try {
      const sentAt = monotonicMs();
      const missed = await this.renew(session, leases, leases && this.reports.take(leases));
      this.works = true;
      this.body.renewed(sentAt);
      const gone = missed.filter(({ outcome }) => outcome === 'gone');
      if (gone.length > 0) this.body.gone(gone);
      return gone.length === missed.length;
    } finally {
      limit.cancel();
    }
  }

  /** Renews in one statement, which carries `beats` when something was reported: reports cost no statement of their own. */
  private async renew(
    session: Session,
    leases: readonly Lease[] | undefined,
    beats: readonly ProgressBeat[] | undefined,
  ): Promise<readonly MissedBeat[]> {
    const { owner, leaseTtlMs } = this.options;
    if (beats) {
      try {
        const missed = await this.store.heartbeatProgress(session, owner, leaseTtlMs, beats);
        const locked = new Set(
          missed.filter(({ outcome }) => outcome === 'skipped').map(({ runId, node }) => `${runId}:${node}`),
        );
        this.reports.putBack(beats.filter(({ runId, node }) => locked.has(`${runId}:${node}`)));
        return missed;
      } catch (error) {
        if (!isAnswer(error)) {
          this.reports.putBack(beats);
          throw error;
        }
        // A report that cannot be stored must not cost a lease.
        this.body.problem('Progress could not be stored', error);
      }
    }
    return this.store.heartbeat(session, owner, leaseTtlMs, leases ?? null);
  }

  private async connect(): Promise<Session> {
    const client = await this.body.connect(Math.min(this.options.leaseTtlMs / BEATS, LONGEST_CONNECT_MS));
    client.on('error', () => this.onLost(client)); // without a listener it would end the process
    this.client = client;
    if (this.stopping.signal.aborted) destroyClient(client);
    const session = new Session(client, { preparedStatements: this.options.preparedStatements });
    const limit = startTimer(this.options.leaseTtlMs / BEATS, () => destroyClient(client));
    try {
      await keepSession(session, LEASE_CONNECTION);
    } finally {
      limit.cancel();
    }
    return session;
  }

  /**
   * The connection has ended while it lay idle. The next beat may be nearly TTL / 3 away, and after an outage whoever has been connected for
   * so long takes expired leases away (C8): so it comes now, on a new one.
   */
  private onLost(client: RawClient): void {
    if (this.client !== client) return;
    this.works = false;
    this.disconnect();
    this.beatNow();
  }

  private disconnect(): void {
    if (this.client) destroyClient(this.client);
    this.client = undefined;
    this.session = undefined;
  }
}
