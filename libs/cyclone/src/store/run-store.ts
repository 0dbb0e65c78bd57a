import type { RunState, StepState } from '../model/states.js';
import { quoteIdentifier } from './identifier.js';
import { checkedStatement, type Session, type Statement } from './session.js';

/** A run as cyclone_v_runs shows it. Times are ISO 8601 texts of the database's clock, with microseconds. */
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

/** The JSON of a RunRecord, of a row of cyclone_v_runs in `schema` that the query calls r. */
export function runRecordJson(schema: string): string {
  const iso = (column: string): string => `${quoteIdentifier(schema)}.cyclone_iso(r.${column})`;
  return `json_build_object('id', r.id::text, 'workflow', r.workflow, 'state', r.state, 'openSteps', r.open_steps,
                'resultNode', r.result_node, 'onceKey', r.once_key, 'parentRunId', r.parent_run_id::text, 'parentNode', r.parent_node,
                'tags', r.tags, 'createdAt', ${iso('created_at')}, 'startsAt', ${iso('starts_at')}, 'deadlineAt', ${iso('deadline_at')},
                'pausedAt', ${iso('paused_at')}, 'failedAt', ${iso('failed_at')}, 'cancelledAt', ${iso('cancelled_at')},
                'finishedAt', ${iso('finished_at')}, 'cancelReason', r.cancel_reason)`;
}

/** Reads runs and steps. Changes nothing, holds no connection. */
export class RunStore {
  private readonly states: Statement;
  private readonly outcomes: Statement;
  private readonly info: Statement;
  private readonly steps: Statement;

  constructor(schema: string) {
    const quoted = quoteIdentifier(schema);
    this.states = checkedStatement(
      schema,
      'runStates',
      `select id, state from ${quoted}.cyclone_runs where id = any($1::bigint[])`,
    );
    this.outcomes = checkedStatement(
      schema,
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
    this.info = checkedStatement(
      schema,
      'runInfo',
      `select ${runRecordJson(schema)} from ${quoted}.cyclone_v_runs r where id = $1`,
    );
    this.steps = checkedStatement(
      schema,
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
    return row?.[0] == null ? undefined : (JSON.parse(row[0]) as RunRecord);
  }

  /** The steps of a run, by node; run ids as strings. */
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
