import type { PlanNode } from '../graph/plan.js';
import { functionCall, type Session, type Statement } from './session.js';

/** A node of a new run, as the database takes it. */
export type NewNode = Omit<PlanNode, 'handler'>;

/** A run to be made, with its whole graph. */
export interface NewRun {
  /** An id of `reserveIds`; all runs of a call have one or none has. */
  readonly id?: string;
  readonly workflow: string;
  readonly resultNode: string | null;
  /** JSON text of an object; null for none. */
  readonly tags: string | null;
  readonly delayMs: number | null;
  /** ISO 8601 with zone; wins over the delay. */
  readonly startAt: string | null;
  readonly deadlineMs: number | null;
  readonly nodes: readonly NewNode[];
  /** Edges: [node, the node that it depends on]. */
  readonly deps: readonly (readonly [string, string])[];
}

export interface NewKeyedRun extends NewRun {
  readonly onceKey: string;
  /** Of the input, to notice a key that comes again with another one (R7). */
  readonly onceHash: string;
  /** A UUID of this submit: when its answer is lost and it is sent again, it finds by it that the run is its own. */
  readonly onceToken: string;
}

/** What became of a keyed submit (cyclone_submit_once). */
export interface KeyedOutcome {
  readonly outcome: 'created' | 'exists' | 'busy' | 'conflict';
  /** '' when busy or in conflict. */
  readonly runId: string;
  readonly sameInput: boolean;
}

/** Submits runs in one call (R8). Holds no connection. */
export class SubmitStore {
  private readonly reserveStatement: Statement;
  private readonly submitStatement: Statement;
  private readonly onceStatement: Statement;

  constructor(schema: string) {
    const answered = 'run_index, run_id, outcome, same_input';
    this.reserveStatement = functionCall(schema, 'cyclone_reserve_run_ids', 1, '*', 'reserveIds');
    this.submitStatement = functionCall(schema, 'cyclone_submit', 22, 'run_index, run_id', 'submit');
    this.onceStatement = functionCall(schema, 'cyclone_submit_once', 26, answered, 'submitOnce');
  }

  /** Ids for runs that need them before they are made. One that is not used is lost, as by any sequence. */
  async reserveIds(session: Session, count: number): Promise<string[]> {
    const rows = await session.rows(this.reserveStatement, [count]);
    return rows.map(([id]) => id ?? '');
  }

  /** Makes the runs; gives their ids in the order of `runs`. */
  async submit(session: Session, runs: readonly NewRun[]): Promise<string[]> {
    const rows = await session.rows(this.submitStatement, [idsOf(runs), ...columnsOf(runs)]);
    const ids = Array.from({ length: runs.length }, () => '');
    for (const [index, id] of rows) ids[Number(index) - 1] = id ?? '';
    return ids;
  }

  /**
   * Makes the runs of several batches, one call each, all in one transaction (R8); gives their ids in order. One batch is a
   * transaction by itself.
   */
  async submitBatches(session: Session, batches: readonly (readonly NewRun[])[]): Promise<string[]> {
    const submitAll = async (within: Session): Promise<string[]> => {
      const ids: string[] = [];
      for (const batch of batches) ids.push(...(await this.submit(within, batch)));
      return ids;
    };
    return batches.length > 1 ? session.transaction('Submit', submitAll) : submitAll(session);
  }

  /**
   * Makes at most one run for each (workflow, key) (R7); gives the outcomes in the order of `runs`.
   * @param waitMs how long to wait for a transaction that holds a key
   */
  async submitOnce(session: Session, runs: readonly NewKeyedRun[], waitMs: number): Promise<KeyedOutcome[]> {
    const rows = await session.rows(this.onceStatement, [
      idsOf(runs),
      runs.map((r) => r.onceKey),
      runs.map((r) => r.onceHash),
      runs.map((r) => r.onceToken),
      waitMs,
      ...columnsOf(runs),
    ]);
    const outcomes = Array.from<KeyedOutcome>({ length: runs.length });
    for (const [index, runId, outcome, same] of rows) {
      outcomes[Number(index) - 1] = {
        outcome: outcome as KeyedOutcome['outcome'],
        runId: runId ?? '',
        sameInput: same === 't',
      };
    }
    return outcomes;
  }
}

/** The ids that were reserved for the runs; null where the sequence gives them. */
function idsOf(runs: readonly NewRun[]): (string | undefined)[] | null {
  return runs[0]?.id === undefined ? null : runs.map(({ id }) => id);
}

/** The runs, their nodes and their edges as columns; nodes and edges name their run by its index from 1. */
function columnsOf(runs: readonly NewRun[]): unknown[] {
  const nodes: [number, NewNode][] = [];
  const deps: [number, readonly [string, string]][] = [];
  runs.forEach((run, i) => {
    for (const node of run.nodes) nodes.push([i + 1, node]);
    for (const dep of run.deps) deps.push([i + 1, dep]);
  });
  return [
    runs.map((r) => r.workflow),
    runs.map((r) => r.resultNode),
    runs.map((r) => r.tags),
    runs.map((r) => r.delayMs),
    runs.map((r) => r.startAt),
    runs.map((r) => r.deadlineMs),
    nodes.map(([index]) => index),
    nodes.map(([, n]) => n.node),
    nodes.map(([, n]) => n.nodeType),
    nodes.map(([, n]) => n.kind),
    nodes.map(([, n]) => n.queue),
    nodes.map(([, n]) => n.priority),
    nodes.map(([, n]) => n.inputJson),
    nodes.map(([, n]) => n.inputSpec),
    nodes.map(([, n]) => n.openDeps),
    nodes.map(([, n]) => n.dependents),
    nodes.map(([, n]) => n.maxAttempts),
    nodes.map(([, n]) => n.policyJson),
    deps.map(([index]) => index),
    deps.map(([, dep]) => dep[0]),
    deps.map(([, dep]) => dep[1]),
  ];
}
