import { TRANSITIONS, type Entity } from '#cyclone/model/transitions.js';

/** What moved a step or a run, where several rows of the table have the same pair of states. */
export type Cause =
  | 'submit'
  | 'retryable error'
  | 'reclaim'
  | 'snooze'
  | 'timeout'
  | 'release'
  | 'interruption'
  | 'gave up'
  | 'reclaim limit'
  | 'interruption limit'
  | 'too large'
  | 'deadline'
  | 'child retry'
  | 'retry before its dependencies';

/** How the trigger of the row begins that a cause belongs to. */
const BEGINNINGS: Record<Cause, string> = {
  submit: 'submit or enqueue, with upstream',
  'retryable error': 'retryable error',
  reclaim: 'the lease expired, sweep reclaims',
  snooze: 'snooze',
  timeout: 'timed out, attempt <',
  release: 'released by',
  interruption: 'interrupted by the database or the network (',
  'gave up': 'PermanentError, or',
  'reclaim limit': 'the lease expired after',
  'interruption limit': 'interrupted by the database or the network after',
  'too large': 'fan-out node: its list is not',
  deadline: 'the run deadline elapsed',
  'child retry': 'retry or retryAll of a child node',
  'retry before its dependencies': 'retry or retryAll, a dependency',
};

/** Rows that nothing can take yet: the node types exist as rows, the operations that move them do not. */
const NOT_YET: readonly [entity: Entity, from: string, to: string, beginning: string, reason: string][] = [
  ['step', 'new', 'pending', 'an item over', 'fan-out nodes do not expand yet'],
  ['step', 'new', 'completed', 'a fan-out node', 'fan-out nodes do not expand yet'],
  ['step', 'pending', 'completed', 'fan-out node', 'fan-out nodes do not expand yet'],
  ['step', 'waiting_timer', 'completed', 'the time has come', 'nothing ends waits yet'],
  ['step', 'waiting_signal', 'completed', 'a signal is', 'nothing sends signals yet'],
  ['step', 'waiting_signal', 'discarded', 'maxWait elapsed', 'nothing ends waits yet'],
  ['step', 'waiting_child', 'completed', 'the child run', 'no worker starts child runs yet'],
  ['step', 'waiting_child', 'discarded', 'the child run', 'no worker starts child runs yet'],
  ['run', 'cancelled', 'running', 'a child run', 'no worker starts child runs yet'],
];

/** One row of the table, from one of its states. */
export interface CountedRow {
  readonly entity: Entity;
  readonly from: string;
  readonly to: string;
  readonly trigger: string;
  /** Why nothing takes it, when nothing can. */
  readonly notYet: string | undefined;
}

export const COUNTED_ROWS: readonly CountedRow[] = TRANSITIONS.flatMap(({ entity, from, to, trigger }) =>
  from.map((one): CountedRow => {
    const exception = NOT_YET.find(
      ([of, before, after, beginning]) =>
        of === entity && before === one && after === to && trigger.startsWith(beginning),
    );
    return { entity, from: one, to, trigger, notYet: exception?.[4] };
  }),
);

for (const [entity, from, to, beginning] of NOT_YET) {
  const is = (row: CountedRow) => row.entity === entity && row.from === from && row.to === to;
  if (!COUNTED_ROWS.some((row) => is(row) && row.trigger.startsWith(beginning))) {
    throw new Error(`The table has no row ${entity} ${from} → ${to} (${beginning} …).`);
  }
}

/** The place in `COUNTED_ROWS` of the row that a change of state takes. Throws when there is none, or no single one. */
export function rowOf(entity: Entity, from: string, to: string, cause?: Cause): number {
  const key = `${entity} ${from} ${to} ${cause ?? ''}`;
  const known = found.get(key);
  if (known !== undefined) return known;
  const pair = COUNTED_ROWS.filter((row) => row.entity === entity && row.from === from && row.to === to);
  const hits = pair.length === 1 ? pair : pair.filter((row) => cause && row.trigger.startsWith(BEGINNINGS[cause]));
  const [hit] = hits;
  if (!hit || hits.length > 1) throw new Error(`${hits.length} rows for: ${key}`);
  found.set(key, COUNTED_ROWS.indexOf(hit));
  return COUNTED_ROWS.indexOf(hit);
}
const found = new Map<string, number>();

/** How often each row was taken. */
export class RowCounts {
  private readonly counts = COUNTED_ROWS.map(() => 0);
  /** Of the rounds of several operations at once: in how many one met another's lock, and how many took effect in another order than they were begun. */
  readonly rounds = { all: 0, locked: 0, reordered: 0 };

  add(taken: readonly number[]): void {
    for (const row of taken) this.counts[row] = (this.counts[row] ?? 0) + 1;
  }

  /** The rows that can be taken and were taken fewer times than this, one line each. */
  missing(atLeast: number): string[] {
    return COUNTED_ROWS.flatMap((row, i) => {
      const count = this.counts[i] ?? 0;
      return !row.notYet && count < atLeast
        ? [`${row.entity} ${row.from} → ${row.to} (${row.trigger}): ${count} times`]
        : [];
    });
  }

  /** Rows that were taken although they are listed as impossible: then the list is out of date. */
  surprising(): string[] {
    return COUNTED_ROWS.filter((row, i) => row.notYet && this.counts[i]).map(
      (row) => `${row.entity} ${row.from} → ${row.to}`,
    );
  }

  /** How many rows can be taken, and how often the rarest of them was. */
  summary(): { rows: number; least: number } {
    const possible = this.counts.filter((_, i) => !COUNTED_ROWS[i]?.notYet);
    return { rows: possible.length, least: Math.min(...possible) };
  }

  toString(): string {
    const { all, locked, reordered } = this.rounds;
    const rows = COUNTED_ROWS.map((row, i) => {
      const note = row.notYet ? `not yet: ${row.notYet}` : row.trigger.slice(0, 70);
      const change = `${row.from} → ${row.to}`;
      return `${String(this.counts[i]).padStart(8)}  ${row.entity.padEnd(4)}  ${change.padEnd(30)}  ${note}`;
    });
    const rounds = `${all} rounds of operations at once: ${locked} with a lock in the way, ${reordered} in another order than they were begun`;
    return [...rows, rounds].join('\n');
  }
}
