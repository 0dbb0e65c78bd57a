import type { Explanation } from '../model/explanation.js';
import type { RunState, StepState } from '../model/states.js';
import { quoteIdentifier } from './identifier.js';
import { runRecordJson, type RunRecord, type StepRecord } from './run-store.js';
import { checkedStatement, type Session, type Statement } from './session.js';

/** A worker that has not been seen for so long is taken for dead; it ticks every second by default. */
export const WORKER_DEAD_AFTER_MS = 60_000;

/** Which runs are meant; what is left out does not filter. */
export interface RunFilter {
  readonly states?: readonly RunState[];
  readonly workflows?: readonly string[];
  /** All of them have to be there. */
  readonly tags?: Readonly<Record<string, string>>;
  readonly onceKey?: string;
  /** The id of the parent run. */
  readonly parent?: string;
  /** ISO 8601, inclusive. */
  readonly createdFrom?: string;
  /** ISO 8601, exclusive. */
  readonly createdTo?: string;
}

export interface RunPageRequest {
  /** The run behind which the page begins; none for the first page. */
  readonly after?: string;
  readonly direction: 'desc' | 'asc';
  readonly limit: number;
  /** Runs to look at at most where no index helps; the page may be short then. */
  readonly scan: number;
}

export interface RunPage {
  readonly runs: readonly RunRecord[];
  /** `after` of the next page; null when there is none. A page may be short, or empty, and still have a next one. */
  readonly next: string | null;
}

export interface StepPageRequest {
  /** The node behind which the page begins. */
  readonly after?: string;
  readonly limit: number;
  readonly states?: readonly StepState[];
  /** Only the items of this fan-out node. */
  readonly parentNode?: string;
  /** Whether input and output come along. */
  readonly payloads: boolean;
}

/** A count that stops somewhere: `capped` says that there are more. */
export interface CappedCount {
  readonly count: number;
  readonly capped: boolean;
}

/** Open steps of one queue and kind in one state. */
export interface OpenCount {
  readonly queue: string;
  readonly kind: string;
  readonly state: StepState;
  readonly steps: number;
  /** Of the available ones: may be claimed now. */
  readonly due: number;
  /** For how long the oldest of them has been due; null without one. */
  readonly oldestDueMs: number | null;
  /** Of the running ones: the lease has expired. */
  readonly expired: number;
}

export interface StateCount extends CappedCount {
  readonly entity: 'run' | 'step';
  readonly state: RunState | StepState;
}

export interface WorkerStatus {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  /** Queue → slots. */
  readonly queues: Readonly<Record<string, number>>;
  readonly kinds: readonly string[];
  readonly startedAt: string;
  readonly lastSeenAt: string;
  readonly draining: boolean;
  readonly running: number;
  readonly status: 'idle' | 'busy' | 'draining' | 'dead';
  /** How many of its steps have waited for a connection of its pool for longer than 5 s; 100 at most are counted. */
  readonly waitingForConnection: number;
  /** What keeps it from claiming and completing steps, as it said itself when it was last seen. */
  readonly problems: readonly string[];
}

/** Available steps that no live worker serves. */
export interface UnservedKind {
  readonly queue: string;
  readonly kind: string;
  /** Counted up to 1,000. */
  readonly due: number;
  readonly oldest: string | null;
}

/** Reads what operators look at; every query is bounded beside any number of finished steps. Changes nothing, holds no connection. */
export class InspectionStore {
  private readonly runs: Statement;
  private readonly count: Statement;
  private readonly steps: Statement;
  private readonly stepsWithPayloads: Statement;
  private readonly explanation: Statement;
  private readonly workerList: Statement;
  private readonly unservedList: Statement;
  private readonly open: Statement;
  private readonly states: Statement;

  constructor(schema: string) {
    const quoted = quoteIdentifier(schema);
    const iso = (column: string): string => `${quoted}.cyclone_iso(${column})`;
    const page = `${quoted}.cyclone_run_ids($1, $2, $3, $4, $5)`;
    this.runs = checkedStatement(
      schema,
      'runPage',
      `select i.walked_to, i.ended, case when r.id is not null then ${runRecordJson(schema)} end
         from ${page} with ordinality i(id, walked_to, ended, place)
         left join ${quoted}.cyclone_v_runs r on r.id = i.id
        order by i.place`,
    );
    this.count = checkedStatement(schema, 'countRuns', `select count(id), bool_and(ended) from ${page}`);
    const steps = (columns: string): string =>
      `select ${columns} from ${quoted}.cyclone_v_steps s
        where run_id = $1 and ($2::text is null or node > $2) and ($3::text[] is null or state = any($3))
          and ($4::text is null or parent_node = $4)
        order by node limit $5`;
    this.steps = checkedStatement(schema, 'stepPage', steps(`to_jsonb(s) - '{input,output}'::text[]`));
    this.stepsWithPayloads = checkedStatement(schema, 'stepPagePayloads', steps('row_to_json(s)'));
    this.explanation = checkedStatement(schema, 'explain', `select ${quoted}.cyclone_explain($1, $2, $3)`);
    this.workerList = checkedStatement(
      schema,
      'workers',
      `select json_build_object('id', id, 'host', host, 'pid', pid, 'version', version, 'queues', queues, 'kinds', kinds,
                'startedAt', ${iso('started_at')}, 'lastSeenAt', ${iso('last_seen_at')}, 'draining', draining, 'running', running, 'status', status,
                'waitingForConnection', (select count(*) from jsonb_object_keys(waiting)),
                'problems', coalesce(problems, '{}'))
         from ${quoted}.cyclone_worker_list($1)`,
    );
    this.unservedList = checkedStatement(
      schema,
      'unserved',
      `select queue, kind, due, ${iso('oldest')} from ${quoted}.cyclone_unserved($1)`,
    );
    this.open = checkedStatement(
      schema,
      'openCounts',
      `select queue, kind, state, steps, due, oldest_due_ms, expired from ${quoted}.cyclone_open_counts() order by queue, kind, state`,
    );
    this.states = checkedStatement(
      schema,
      'stateCounts',
      `select entity, state, n, capped from ${quoted}.cyclone_state_counts($1)`,
    );
  }

  /** Runs by id from a keyset position on (cyclone_run_ids). */
  async runPage(session: Session, filter: RunFilter, request: RunPageRequest): Promise<RunPage> {
    const { after = null, direction, limit, scan } = request;
    // One more than asked for tells whether there is a next page.
    const rows = await session.rows(this.runs, [
      JSON.stringify(filter),
      after,
      direction === 'desc',
      limit + 1,
      Math.max(scan, limit + 1),
    ]);
    const runs = rows.flatMap(([, , run]) => (run == null ? [] : [JSON.parse(run) as RunRecord]));
    if (runs.length > limit) return { runs: runs.slice(0, limit), next: runs[limit - 1]?.id ?? null };
    const end = rows.at(-1);
    return { runs, next: end?.[1] === 't' ? null : (end?.[0] ?? null) };
  }

  /** How many runs match, up to `cap`; also capped when `scan` runs were looked at. */
  async countRuns(session: Session, filter: RunFilter, cap: number, scan: number): Promise<CappedCount> {
    const [row] = await session.rows(this.count, [JSON.stringify(filter), null, true, cap + 1, scan]);
    const found = Number(row?.[0]);
    return { count: Math.min(found, cap), capped: found > cap || row?.[1] !== 't' };
  }

  /** Steps of a run by node, from a keyset position on; every column of cyclone_v_steps. */
  async stepPage(session: Session, runId: string, request: StepPageRequest): Promise<StepRecord[]> {
    const { after = null, limit, states = null, parentNode = null, payloads } = request;
    const rows = await session.rows(payloads ? this.stepsWithPayloads : this.steps, [
      runId,
      after,
      states,
      parentNode,
      limit,
    ]);
    return rows.map(([step]) => ({ ...(JSON.parse(step ?? '{}') as StepRecord), run_id: runId }));
  }

  /** Why a node is not running; undefined when there is no such run. */
  async explain(session: Session, runId: string, node: string): Promise<Explanation | undefined> {
    const [row] = await session.rows(this.explanation, [runId, node, WORKER_DEAD_AFTER_MS]);
    return row?.[0] == null ? undefined : (JSON.parse(row[0]) as Explanation);
  }

  /** The known workers, the oldest first. */
  async workers(session: Session): Promise<WorkerStatus[]> {
    const rows = await session.rows(this.workerList, [WORKER_DEAD_AFTER_MS]);
    return rows.map(([worker]) => JSON.parse(worker ?? '{}') as WorkerStatus);
  }

  /** What is available and served by nobody. */
  async unserved(session: Session): Promise<UnservedKind[]> {
    const rows = await session.rows(this.unservedList, [WORKER_DEAD_AFTER_MS]);
    return rows.map(([queue, kind, due, oldest]) => ({
      queue: queue ?? '',
      kind: kind ?? '',
      due: Number(due),
      oldest: oldest ?? null,
    }));
  }

  /** Open steps by queue, kind and state, exactly. */
  async openCounts(session: Session): Promise<OpenCount[]> {
    const rows = await session.rows(this.open, []);
    return rows.map((row) => ({
      queue: row[0] ?? '',
      kind: row[1] ?? '',
      state: row[2] as StepState,
      steps: Number(row[3]),
      due: Number(row[4]),
      oldestDueMs: row[5] == null ? null : Number(row[5]),
      expired: Number(row[6]),
    }));
  }

  /** Runs by state, steps by terminal state; what is over is counted up to `cap`. */
  async stateCounts(session: Session, cap: number): Promise<StateCount[]> {
    const rows = await session.rows(this.states, [cap]);
    return rows.map(([entity, state, count, capped]) => ({
      entity: entity as StateCount['entity'],
      state: state as StateCount['state'],
      count: Number(count),
      capped: capped === 't',
    }));
  }
}
