import { quoteIdentifier } from './identifier.js';
import type { StepRecord } from './run-store.js';
import { checkedStatement, type Session, type Statement } from './session.js';

/** An execution that did not complete its step, every column of cyclone_attempts under its own name. */
export type AttemptRecord = Readonly<Record<string, unknown>> & {
  readonly run_id: string;
  readonly generation: number;
};

/** Open steps of a kind, as cyclone_v_kinds counts them. */
export interface KindRecord {
  readonly kind: string;
  readonly pending: number;
  readonly available: number;
  readonly running: number;
  readonly waiting: number;
  readonly paused: number;
  /** For how long the oldest due step has been waiting; null without one. */
  readonly oldestAvailableAgeMs: number | null;
}

/** Reads single steps and what a console shows beside the lists of InspectionStore. Changes nothing, holds no connection. */
export class AdminStore {
  private readonly steps: Statement;
  private readonly stepsWithPayloads: Statement;
  private readonly attemptList: Statement;
  private readonly kindList: Statement;
  private readonly clock: Statement;

  constructor(schema: string) {
    const quoted = quoteIdentifier(schema);
    const step = (columns: string): string =>
      `select ${columns} from ${quoted}.cyclone_v_steps s where run_id = $1 and node = $2`;
    this.steps = checkedStatement(schema, 'step', step(`to_jsonb(s) - '{input,output}'::text[]`));
    this.stepsWithPayloads = checkedStatement(schema, 'stepPayloads', step('row_to_json(s)'));
    this.attemptList = checkedStatement(
      schema,
      'attempts',
      `select row_to_json(a) from ${quoted}.cyclone_attempts a where run_id = $1 and node = $2 order by generation desc limit $3`,
    );
    this.kindList = checkedStatement(
      schema,
      'kinds',
      `select kind, pending, available, running, waiting, paused, floor(extract(epoch from oldest_available_age) * 1000)
         from ${quoted}.cyclone_v_kinds order by kind`,
    );
    this.clock = checkedStatement(schema, 'clock', `select ${quoted}.cyclone_iso(${quoted}.cyclone_now())`);
  }

  /** One step; undefined when there is none. Input and output are left out unless they are asked for. */
  async step(
    session: Session,
    runId: string,
    node: string,
    { payloads = false } = {},
  ): Promise<StepRecord | undefined> {
    const [row] = await session.rows(payloads ? this.stepsWithPayloads : this.steps, [runId, node]);
    return row?.[0] == null ? undefined : { ...(JSON.parse(row[0]) as StepRecord), run_id: runId };
  }

  /** The latest executions of a node that did not complete it, the last first. */
  async attempts(session: Session, runId: string, node: string, limit: number): Promise<AttemptRecord[]> {
    const rows = await session.rows(this.attemptList, [runId, node, limit]);
    return rows.map(([attempt]) => ({ ...(JSON.parse(attempt ?? '{}') as AttemptRecord), run_id: runId }));
  }

  async kinds(session: Session): Promise<KindRecord[]> {
    const rows = await session.rows(this.kindList, []);
    return rows.map(([kind, pending, available, running, waiting, paused, age]) => ({
      kind: kind ?? '',
      pending: Number(pending),
      available: Number(available),
      running: Number(running),
      waiting: Number(waiting),
      paused: Number(paused),
      oldestAvailableAgeMs: age == null ? null : Number(age),
    }));
  }

  /** The clock of the database. */
  async now(session: Session): Promise<string> {
    const [row] = await session.rows(this.clock, []);
    return row?.[0] ?? '';
  }
}
