import { listed } from '../model/listed.js';
import { sleep, startTimer } from '../model/timer.js';
import type { Engine } from '../store/engine.js';
import type { PurgeBatch } from '../store/operations-store.js';
import { destroyClient, type RawClient } from '../store/raw-client.js';
import type { Session } from '../store/session.js';
import type { ResolvedRetention } from './retention-options.js';
import type { ProblemLog } from './worker-logger.js';

/** Timers come a little early or late; a round that is nearly due is due. */
const NEARLY = 0.9;
/** Runs that a batch looks at, for each that it may delete. */
const SCAN_FACTOR = 10;
/** A batch that is not answered for so long will not be answered. */
const BATCH_LIMIT_MS = 300_000;
/** After a batch the sweep rests as long as it took, so that it never has the database for itself; but no longer than this. */
const LONGEST_REST_MS = 1_000;

export interface RetentionTools {
  readonly engine: Engine;
  readonly retention: ResolvedRetention;
  readonly problems: ProblemLog;
}

/**
 * Deletes runs whose retention has passed, in rounds over all runs (R35). One process of all makes a round, in small transactions on a
 * connection of the pool that it gives back between them; none waits for a lock that a claim, a completion or a heartbeat holds, or
 * makes one wait.
 */
export class RetentionSweep {
  private round: Promise<void> | undefined;
  private client: RawClient | undefined;
  /** Named to the operator already: what the last whole round met. */
  private blocked: ReadonlySet<string> = new Set();
  private readonly stopped = new AbortController();

  constructor(private readonly tools: RetentionTools) {}

  /** Makes a round if one is due, unless one is under way here. Never throws. */
  run(): void {
    if (this.stopped.signal.aborted) return;
    this.round ??= this.makeRound().finally(() => (this.round = undefined));
  }

  /** Ends after the batch under way, whose connection is cut after `limitMs`. */
  async stop(limitMs: number): Promise<void> {
    this.stopped.abort();
    const over = new AbortController();
    const round = this.round?.finally(() => over.abort());
    if (round) await Promise.race([round, sleep(limitMs, { signal: over.signal })]);
    if (this.client) destroyClient(this.client);
  }

  private async makeRound(): Promise<void> {
    const { engine, retention, problems } = this.tools;
    const blocked = new Set<string>();
    try {
      const everyMs = Math.floor(retention.intervalMs * NEARLY);
      if (!(await this.call((session) => engine.operations.beginRound(session, 'retention', everyMs)))) return;
      for (let after = '0'; ;) {
        const startedAt = performance.now();
        const batch = await this.call((session) => this.purge(session, after));
        if (!batch) return;
        for (const run of batch.blocked) blocked.add(run);
        if (batch.ended) break;
        after = batch.walkedTo;
        await sleep(Math.min(performance.now() - startedAt, LONGEST_REST_MS), { signal: this.stopped.signal });
      }
    } catch (error) {
      if (!this.stopped.signal.aborted) {
        problems.report('Runs could not be deleted by their retention; the next round tries again', error);
      }
      return;
    }
    this.name(blocked);
  }

  private purge(session: Session, after: string): Promise<PurgeBatch> {
    const { engine, retention } = this.tools;
    return engine.operations.purge(session, {
      after,
      olderThanMs: null,
      defaultAgeMs: retention.defaultAgeMs,
      limit: retention.batchSize,
      scan: SCAN_FACTOR * retention.batchSize,
      dryRun: false,
      note: { actor: null, reason: null },
    });
  }

  /** One call on a connection of the pool; undefined when the worker has been told to stop before it began. */
  private async call<T>(work: (session: Session) => Promise<T>): Promise<T | undefined> {
    if (this.stopped.signal.aborted) return undefined;
    return this.tools.engine.connections.use(async (session) => {
      // The pool may have kept it waiting past the end.
      if (this.stopped.signal.aborted) return undefined;
      const limit = startTimer(BATCH_LIMIT_MS, () => destroyClient(session.client), { unref: true });
      this.client = session.client;
      try {
        return await work(session);
      } finally {
        this.client = undefined;
        limit.cancel();
      }
    });
  }

  private name(blocked: ReadonlySet<string>): void {
    const unnamed = [...blocked].filter((run) => !this.blocked.has(run));
    this.blocked = blocked;
    if (unnamed.length === 0) return;
    this.tools.problems.report(
      `${unnamed.length} run(s) cannot be deleted by their retention, because a foreign key of the application refers to them: ` +
        listed(unnamed),
    );
  }
}
