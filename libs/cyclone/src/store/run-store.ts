import type { RunState, StepState } from '../model/states.js';
import { quoteIdentifier } from './identifier.js';
import { statement, type Session, type Statement } from './session.js';

/** A run as cyclone_v_runs shows it. Times are ISO 8601 texts of the database's clock, with microseconds (S31). */
export interface RunRecord {
  readonly id: string;
  readonly workflow: string;
  readonly state: RunState;
  readonly openSteps: number;
  readonly resultNode: string | null;
  readonly onceKey: string | null;
  readonly parentRunId: string | null;
  readonly parentNode: string | null;
  readonly tags: Readonly<Record<string, string>> | null;
  readonly createdAt: string;
  readonly startsAt: string;
  readonly deadlineAt: string | null;
  readonly pausedAt: string | null;
  readonly failedAt: string | null;
  readonly cancelledAt: string | null;
  readonly finishedAt: string | null;
  readonly cancelReason: string | null;
}

/** What a waiter needs to know of a run that has ended. */
export interface RunOutcome {
  readonly runId: string;
  readonly state: RunState;
  readonly resultNode: string | null;
  /** The state of the result node; null when the run has none. */
  readonly resultState: StepState | null;
  /** JSON text of the result. */
  readonly output: string | null;
  readonly cancelReason: string | null;
  /** Of a failed run: the discard that failed it. */
  readonly failedNode: string | null;
  readonly failedKind: string | null;
  readonly error: string | null;
  readonly errorKind: string | null;
}

/** A step as cyclone_v_steps shows it, every column under its own name. */
export type StepRecord = Readonly<Record<string, unknown>> & {
  readonly run_id: string;
  readonly node: string;
  readonly kind: string;
  readonly state: StepState;
  readonly input: unknown;
  readonly output: unknown;
};

const iso = (column: string): string => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

/** Reads runs and steps. Changes nothing, holds no connection. */
export class RunStore {
  private readonly states: Statement;
  private readonly outcomes: Statement;
  private readonly info: Statement;
  private readonly steps: Statement;

  constructor(schema: string) {
    const quoted = quoteIdentifier(schema);
    this.states = statement('runStates', `select id, state from ${quoted}.cyclone_runs where id = any($1::bigint[])`);
    this.outcomes = statement(
      'runOutcomes',
      `select r.id, r.state, r.result_node, s.state, s.output, r.cancel_reason, d.node, d.kind, d.error, d.error_kind
         from ${quoted}.cyclone_runs r
         left join ${quoted}.cyclone_steps s on s.run_id = r.id and s.node = r.result_node
         left join lateral (
           select f.node, f.kind, f.error, f.error_kind from ${quoted}.cyclone_steps f
            where r.state = 'failed' and f.run_id = r.id and f.state = 'discarded'
            order by f.contained, f.finished_at, f.node limit 1
         ) d on true
        where r.id = any($1::bigint[])`,
    );
    this.info = statement(
      'runInfo',
      `select id, workflow, state, open_steps, result_node, once_key, parent_run_id, parent_node, tags, ${iso('created_at')}, ${iso('starts_at')},
              ${iso('deadline_at')}, ${iso('paused_at')}, ${iso('failed_at')}, ${iso('cancelled_at')}, ${iso('finished_at')}, cancel_reason
         from ${quoted}.cyclone_v_runs where id = $1`,
    );
    this.steps = statement(
      'runSteps',
      `select row_to_json(s) from ${quoted}.cyclone_v_steps s where run_id = $1 order by node`,
    );
  }

  /** The states of runs; a run that does not exist (any more) is missing in the answer. */
  async runStates(session: Session, runIds: readonly string[]): Promise<Map<string, RunState>> {
    const rows = await session.rows(this.states, [runIds]);
    return new Map(rows.map(([id, state]) => [id ?? '', state as RunState]));
  }

  /** How a run stands, with its result or its failure; undefined when it does not exist. */
  async runOutcome(session: Session, runId: string): Promise<RunOutcome | undefined> {
    return (await this.runOutcomes(session, [runId])).get(runId);
  }

  /** The same of several runs; one that does not exist (any more) is missing in the answer. */
  async runOutcomes(session: Session, runIds: readonly string[]): Promise<Map<string, RunOutcome>> {
    const rows = await session.rows(this.outcomes, [runIds]);
    return new Map(rows.map((row) => [row[0] ?? '', toOutcome(row)]));
  }

  /** A run; undefined when it does not exist. */
  async runInfo(session: Session, runId: string): Promise<RunRecord | undefined> {
    const [row] = await session.rows(this.info, [runId]);
    if (!row) return undefined;
    const text = (i: number): string => row[i] ?? '';
    const optional = (i: number): string | null => row[i] ?? null;
    return {
      id: text(0),
      workflow: text(1),
      state: text(2) as RunState,
      openSteps: Number(row[3]),
      resultNode: optional(4),
      onceKey: optional(5),
      parentRunId: optional(6),
      parentNode: optional(7),
      tags: row[8] == null ? null : (JSON.parse(row[8]) as Record<string, string>),
      createdAt: text(9),
      startsAt: text(10),
      deadlineAt: optional(11),
      pausedAt: optional(12),
      failedAt: optional(13),
      cancelledAt: optional(14),
      finishedAt: optional(15),
      cancelReason: optional(16),
    };
  }

  /** The steps of a run, by node; run ids as strings (S62). */
  async runSteps(session: Session, runId: string): Promise<StepRecord[]> {
    const rows = await session.rows(this.steps, [runId]);
    return rows.map(([json]) => ({ ...(JSON.parse(json ?? '{}') as StepRecord), run_id: runId }));
  }
}

function toOutcome(row: readonly (string | null)[]): RunOutcome {
  const [id, state, resultNode, resultState, output, cancelReason, failedNode, failedKind, error, errorKind] = row;
  return {
    runId: id ?? '',
    state: state as RunState,
    resultNode: resultNode ?? null,
    resultState: (resultState ?? null) as StepState | null,
    output: output ?? null,
    cancelReason: cancelReason ?? null,
    failedNode: failedNode ?? null,
    failedKind: failedKind ?? null,
    error: error ?? null,
    errorKind: errorKind ?? null,
  };
}
