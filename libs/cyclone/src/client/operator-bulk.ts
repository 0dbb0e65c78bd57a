import type { Duration } from '../model/duration.js';
import { ChildNotRetryableError, NotRetryableError, RunNotFoundError } from '../model/errors/run-errors.js';
import { checkKeys } from '../model/known-keys.js';
import { listed } from '../model/listed.js';
import type { ErrorKind } from '../model/states.js';
import { sleep } from '../model/timer.js';
import type { ExhaustedPosition } from '../store/dead-letter-store.js';
import type { Engine } from '../store/engine.js';
import type { AuditNote, PurgeRequest, Repair, StrandedRun } from '../store/operations-store.js';
import type { Session } from '../store/session.js';
import type { ClientLogger } from './definitions.js';
import type { RunChanges } from './operator-changes.js';
import {
  checkAge,
  checkAttempts,
  checkBulk,
  checkDeadLetters,
  checkWhole,
  DEAD_LETTER_FILTERS,
  noteOf,
  type BulkOptions,
  type DeadLetterFilter,
  type RetryOptions,
} from './operator-options.js';
import { onConnection, repeatTransient } from './transient.js';

const DEAD_LETTERS_PER_PAGE = 500;
const PURGE_BATCH = 1_000;
/** Runs that one batch of a purge looks at. */
const SCAN = 20_000;
/** What a piece of the walk for stranded runs may cost (cyclone_stranded): some thousands of running runs. */
const STRANDED_BUDGET = 200_000;
const MAX_LIMIT = 1_000_000;
/** How often a run that somebody else has locked is asked for again, and the pause between. */
const BUSY_TRIES = 5;
const BUSY_PAUSE_MS = 200;
const BULK_KEYS = ['dryRun', 'all', 'signal', 'actor', 'reason'] as const;

interface RetryExhaustedSelection extends DeadLetterFilter {
  /** Steps to look at, the newest first, 1 to 1,000,000. @default all */
  readonly limit?: number;
  /** Confirms that a change without any filter is meant: it refuses without. @default false */
  readonly all?: boolean;
}

/** Which dead letters to retry. Unless it is a dry run, by a filter or with `all: true`. */
export type RetryExhaustedQuery<DryRun extends boolean = boolean> = RetryExhaustedSelection &
  (DryRun extends true
    ? unknown
    : | { readonly all: true }
      | Required<Pick<DeadLetterFilter, 'kind'>>
      | { readonly reason: ErrorKind }
      | Required<Pick<DeadLetterFilter, 'fingerprint'>>
      | Required<Pick<DeadLetterFilter, 'since'>>);

export interface RetryExhaustedOptions extends RetryOptions, Omit<BulkOptions, 'all'> {
  /** Told after each run: how many were reopened, how many could not be. */
  readonly onProgress?: (progress: {
    readonly reopened: number;
    readonly skipped: number;
    readonly runId: string;
  }) => void;
}

export interface PurgeSettings extends BulkOptions {
  /** Age since the end of a run. @default the retention of its steps (R35); a run of a step without one stays */
  readonly olderThan?: Duration;
  /** The retention of steps that have none of their own, when `olderThan` is left out. @default the module's `retention.defaultAge` */
  readonly defaultAge?: Duration;
  /** Runs to delete at most, 1 to 1,000,000. @default all */
  readonly limit?: number;
  /** Told after each batch what was deleted so far. */
  readonly onProgress?: (progress: PurgeProgress) => void;
}

/** A purge that is no dry run names an age, or says `all: true` for whatever the retention of its steps allows. */
export type PurgeOptions = PurgeSettings &
  (
    | { readonly dryRun: true }
    | { readonly olderThan: Duration }
    | { readonly defaultAge: Duration }
    | { readonly all: true }
  );

export interface PurgeProgress {
  readonly runs: number;
  readonly steps: number;
  /** Runs that could not be deleted, because a foreign key of the application refers to them. */
  readonly blocked: readonly string[];
}

export interface RepairSettings extends BulkOptions {
  /** Runs to look for at a time, 1 to 10,000. @default 100 */
  readonly batch?: number;
  /** Told of each run that needed a repair. */
  readonly onRun?: (run: RepairedRun) => void;
}

/** A repair has no filter: unless it is a dry run, it says `all: true`. */
export type RepairOptions = RepairSettings & ({ readonly dryRun: true } | { readonly all: true });

/** A run that could not go on by itself, or whose counters were wrong. */
export interface RepairedRun extends StrandedRun {
  /** `busy`: somebody else kept it locked, ask again; `sound`: it went on by itself meanwhile; `found`: a dry run. */
  readonly outcome: Repair['outcome'] | 'found';
}

/** What operators do to many runs. Each transaction is small, so that nothing else waits for them. */
export class BulkOperations {
  constructor(
    private readonly engine: Engine,
    private readonly changes: RunChanges,
    private readonly logger: ClientLogger,
  ) {}

  async retryExhausted(query: RetryExhaustedSelection, options: RetryExhaustedOptions): Promise<number> {
    checkKeys(query, [...DEAD_LETTER_FILTERS, 'limit', 'all'], 'query');
    checkKeys(options, ['dryRun', 'signal', 'actor', 'reason', 'additionalAttempts', 'onProgress'], '');
    const filter = checkDeadLetters(query);
    const named = Object.keys(filter).length > 0;
    const dryRun = checkBulk({ ...options, all: query.all }, named, DEAD_LETTER_FILTERS.join(', '));
    const additional = checkAttempts(options);
    noteOf(options); // a wrong option changes nothing, not even when no run matches
    const { onProgress } = options;
    const stopped = (): boolean => options.signal?.aborted ?? false;
    const seen = new Set<string>();
    let left = query.limit === undefined ? Infinity : checkWhole('limit', query.limit, 1, MAX_LIMIT);
    let reopened = 0;
    let position: ExhaustedPosition | null | undefined;
    while (position !== null && left > 0 && !stopped()) {
      const size = Math.min(left, DEAD_LETTERS_PER_PAGE);
      const before = position;
      const page = await this.read('reading of dead letters', (session) =>
        this.engine.deadLetters.exhaustedRoots(session, filter, size, before),
      );
      for (const runId of page.runIds) {
        if (stopped()) break;
        if (seen.has(runId)) continue;
        seen.add(runId);
        if (dryRun || (await this.reopen(runId, additional, query, options))) reopened++;
        onProgress?.({ reopened, skipped: seen.size - reopened, runId });
      }
      left -= size;
      position = page.next;
    }
    return reopened;
  }

  async purge(options: PurgeSettings): Promise<number> {
    checkKeys(options, [...BULK_KEYS, 'olderThan', 'defaultAge', 'limit', 'onProgress'], '');
    const named = options.olderThan !== undefined || options.defaultAge !== undefined;
    const dryRun = checkBulk(options, named, 'olderThan or defaultAge');
    const olderThanMs = checkAge('olderThan', options.olderThan);
    const defaultAgeMs = checkAge('defaultAge', options.defaultAge ?? this.engine.settings.defaultAge);
    const limit = options.limit === undefined ? Infinity : checkWhole('limit', options.limit, 1, MAX_LIMIT);
    const note = noteOf(options);
    const { onProgress } = options;
    const stopped = (): boolean => options.signal?.aborted ?? false;
    const blocked: string[] = [];
    let runs = 0;
    let steps = 0;
    let after: string | null = '0';
    while (after !== null && runs < limit && !stopped()) {
      const request: PurgeRequest = {
        after,
        olderThanMs,
        defaultAgeMs,
        limit: Math.min(limit - runs, PURGE_BATCH),
        scan: SCAN,
        dryRun,
        note,
      };
      const batch = await repeatTransient(() =>
        this.read('purge of runs', (session) => this.engine.operations.purge(session, request)),
      );
      runs += batch.runs;
      steps += batch.steps;
      blocked.push(...batch.blocked);
      onProgress?.({ runs, steps, blocked });
      after = batch.ended ? null : batch.walkedTo;
    }
    if (blocked.length > 0) {
      this.logger.warn(
        `${blocked.length} run(s) could not be purged, because something of the application refers to them: ` +
          listed(blocked),
      );
    }
    return runs;
  }

  async repair(options: RepairSettings): Promise<number> {
    checkKeys(options, [...BULK_KEYS, 'batch', 'onRun'], '');
    const dryRun = checkBulk(options, false, '');
    const batch = checkWhole('batch', options.batch ?? 100, 1, 10_000);
    const note = noteOf(options);
    const { onRun } = options;
    const stopped = (): boolean => options.signal?.aborted ?? false;
    let repaired = 0;
    let after = '0';
    let ended = false;
    while (!ended && !stopped()) {
      const from = after;
      const page = await this.read('search for stranded runs', (session) =>
        this.engine.operations.stranded(session, from, STRANDED_BUDGET, batch),
      );
      for (const run of page.runs) {
        if (stopped()) break;
        const result = dryRun ? { ...run, outcome: 'found' as const } : await this.repairRun(run, note);
        if (result.outcome === 'repaired' || result.outcome === 'found') repaired++;
        onRun?.(result);
      }
      after = page.walkedTo;
      ended = page.ended;
    }
    return repaired;
  }

  private async reopen(
    runId: string,
    additional: number,
    filter: RetryExhaustedSelection,
    { actor, reason }: RetryOptions,
  ): Promise<boolean> {
    try {
      const detail = { bulk: 'retry_exhausted', filter };
      await this.changes.apply(runId, { action: 'retry_all', additional, detail }, { actor, reason });
      return true;
    } catch (error) {
      // Somebody else has reopened, mended or purged it meanwhile, or its child can never give it a result.
      if (NotRetryableError.is(error) || ChildNotRetryableError.is(error) || RunNotFoundError.is(error)) return false;
      throw error;
    }
  }

  private async repairRun(run: StrandedRun, note: AuditNote): Promise<RepairedRun> {
    let repair: Repair;
    for (let attempt = 1; ; attempt++) {
      repair = await repeatTransient(() =>
        this.read(`repair of run ${run.runId}`, (session) =>
          this.engine.operations.repairRun(session, run.runId, note),
        ),
      );
      if (repair.outcome !== 'busy' || attempt === BUSY_TRIES) break;
      await sleep(BUSY_PAUSE_MS);
    }
    if (repair.outcome === 'repaired') {
      await this.changes.announce(repair.rows);
      this.logger.warn(
        `Repaired run ${run.runId} (${run.workflow}): ${repair.problems.join('; ')}. Something put it into that state: ` +
          `look at the isolation level, at manual UPDATEs and at what \`cyclone doctor\` finds.`,
      );
    }
    return { ...run, ...(repair.problems.length > 0 ? { problems: repair.problems } : {}), outcome: repair.outcome };
  }

  private read<T>(what: string, work: (session: Session) => Promise<T>): Promise<T> {
    return onConnection(this.engine.connections, what, work);
  }
}
