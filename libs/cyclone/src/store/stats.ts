import { RUN_STATES, STEP_STATES, type RunState, type StepState } from '../model/states.js';
import type { CappedCount, InspectionStore, OpenCount, UnservedKind } from './inspection-store.js';
import type { OperationsStore } from './operations-store.js';
import type { Session } from './session.js';

/** Terminal states are counted up to this many. */
const COUNT_CAP = 10_000;

/** Open steps of one queue or one kind. */
export interface OpenWork {
  readonly name: string;
  readonly pending: number;
  readonly available: number;
  /** Of the available ones: not scheduled for later. */
  readonly due: number;
  readonly running: number;
  /** For a timer, a signal or a child run. */
  readonly waiting: number;
  readonly paused: number;
  /** For how long the oldest due step has been waiting for a worker, in milliseconds; null without one. */
  readonly oldestAvailableAgeMs: number | null;
}

/** How everything stands (R34). */
export interface Stats {
  readonly runs: Readonly<Record<RunState, CappedCount>>;
  readonly steps: Readonly<Record<StepState, CappedCount>>;
  readonly queues: readonly OpenWork[];
  readonly kinds: readonly OpenWork[];
  /** For how long the oldest due step has been waiting for a worker, in milliseconds; null without one. */
  readonly oldestAvailableAgeMs: number | null;
  readonly workers: { readonly live: number; readonly draining: number; readonly dead: number };
  readonly health: {
    /**
     * Running runs that cannot go on by themselves, as far as the housekeeping of workers has found them, 1,000 at most: repair them. It
     * looks at 200 running runs or 10,000 that are over each second, and begins anew once a minute.
     */
    readonly strandedRuns: number;
    readonly expiredLeases: number;
    /** Live workers that cannot claim and complete steps at present, with what they say about it. */
    readonly workerProblems: readonly { readonly worker: string; readonly problems: readonly string[] }[];
    /** Available steps whose queue and kind no live worker serves. */
    readonly unserved: readonly UnservedKind[];
  };
}

/** Reads how everything stands: exact for what is open, capped for what is over, bounded however much that is (R34). */
export async function readStats(
  inspection: InspectionStore,
  operations: OperationsStore,
  session: Session,
): Promise<Stats> {
  const open = await inspection.openCounts(session);
  const states = await inspection.stateCounts(session, COUNT_CAP);
  const workers = await inspection.workers(session);
  const unserved = await inspection.unserved(session);
  const stranded = await operations.knownStranded(session);

  const counted = (entity: 'run' | 'step', state: RunState | StepState): CappedCount => {
    const found = states.find((row) => row.entity === entity && row.state === state);
    return found
      ? { count: found.count, capped: found.capped }
      : { count: sum(open, (row) => (row.state === state ? row.steps : 0)), capped: false };
  };
  return {
    runs: Object.fromEntries(RUN_STATES.map((state) => [state, counted('run', state)])) as Stats['runs'],
    steps: Object.fromEntries(STEP_STATES.map((state) => [state, counted('step', state)])) as Stats['steps'],
    queues: grouped(open, (row) => row.queue),
    kinds: grouped(open, (row) => row.kind),
    oldestAvailableAgeMs: oldest(open),
    workers: {
      live: workers.filter(({ status }) => status === 'idle' || status === 'busy').length,
      draining: workers.filter(({ status }) => status === 'draining').length,
      dead: workers.filter(({ status }) => status === 'dead').length,
    },
    health: {
      strandedRuns: stranded.length,
      expiredLeases: sum(open, (row) => row.expired),
      workerProblems: workers
        .filter(({ status, problems }) => status !== 'dead' && problems.length > 0)
        .map(({ id, problems }) => ({ worker: id, problems })),
      unserved,
    },
  };
}

function grouped(open: readonly OpenCount[], nameOf: (row: OpenCount) => string): OpenWork[] {
  const names = [...new Set(open.map(nameOf))].toSorted();
  return names.map((name) => {
    const rows = open.filter((row) => nameOf(row) === name);
    const inState = (test: (state: StepState) => boolean): number =>
      sum(rows, (row) => (test(row.state) ? row.steps : 0));
    return {
      name,
      pending: inState((state) => state === 'pending'),
      available: inState((state) => state === 'available'),
      due: sum(rows, (row) => row.due),
      running: inState((state) => state === 'running'),
      waiting: inState((state) => state.startsWith('waiting_')),
      paused: inState((state) => state === 'paused'),
      oldestAvailableAgeMs: oldest(rows),
    };
  });
}

function sum(rows: readonly OpenCount[], pick: (row: OpenCount) => number): number {
  return rows.reduce((total, row) => total + pick(row), 0);
}

function oldest(rows: readonly OpenCount[]): number | null {
  const ages = rows.flatMap(({ oldestDueMs }) => oldestDueMs ?? []);
  return ages.length === 0 ? null : Math.max(...ages);
}
