import { ENGINE_COLUMNS, toEngineRow, type EngineRow } from './engine-row.js';
import { quoteIdentifier } from './identifier.js';
import { functionCall, checkedStatement, type Session, type Statement } from './session.js';

/** Who asks for a change, and why: it goes into cyclone_audit in the transaction of the change, unless nothing is said. */
export interface AuditNote {
  /** null: the role that is logged in to the database, when there is a reason. */
  readonly actor: string | null;
  readonly reason: string | null;
}

/** An operator's change of one run (cyclone_operate). */
export interface Operation extends AuditNote {
  readonly action: 'cancel' | 'pause' | 'resume' | 'retry' | 'retry_all';
  readonly runId: string;
  /** The node of `retry`; null for the others. */
  readonly node: string | null;
  /** Executions that a retry grants beyond those that are left. */
  readonly additional: number;
  /** Kept with the audit row: which bulk action it belongs to, for instance. */
  readonly detail: Readonly<Record<string, unknown>> | null;
}

export interface AuditRecord extends AuditNote {
  readonly id: string;
  readonly at: string;
  readonly actor: string;
  readonly action: string;
  readonly runId: string | null;
  readonly node: string | null;
  readonly affected: number;
  readonly detail: Readonly<Record<string, unknown>> | null;
}

export interface AuditQuery {
  readonly runId?: string;
  readonly action?: string;
  readonly actor?: string;
  /** Only what is older than this entry. */
  readonly before?: string;
  readonly limit: number;
}

/** Which runs a purge takes, and how much of the work one batch does (cyclone_purge). */
export interface PurgeRequest {
  /** The run after which to start, '0' for the first. */
  readonly after: string;
  /** Age since the end of a run; null lets the retention of its steps decide (R35). */
  readonly olderThanMs: number | null;
  /** The retention of steps that have none of their own; null: for ever. */
  readonly defaultAgeMs: number | null;
  /** Runs to delete at most. */
  readonly limit: number;
  /** Runs to look at at most. */
  readonly scan: number;
  readonly dryRun: boolean;
  readonly note: AuditNote;
}

export interface PurgeBatch {
  readonly runs: number;
  readonly steps: number;
  /** Where the next batch goes on. */
  readonly walkedTo: string;
  /** Whether it came to the last run. */
  readonly ended: boolean;
  /** Runs that something of the application still refers to. */
  readonly blocked: readonly string[];
}

/** A running run that cannot go on by itself, or whose counters are wrong. */
export interface StrandedRun {
  readonly runId: string;
  readonly workflow: string;
  /** false: the counters are wrong, but something in it is still active. */
  readonly stranded: boolean;
  readonly problems: readonly string[];
}

export interface StrandedPage {
  readonly runs: readonly StrandedRun[];
  readonly walkedTo: string;
  readonly ended: boolean;
}

/** What became of a repair. Without a problem there are no rows. */
export interface Repair {
  readonly outcome: 'repaired' | 'sound' | 'busy' | 'not_found' | 'not_running';
  readonly problems: readonly string[];
  /** Events to be told after the commit. */
  readonly rows: readonly EngineRow[];
}

/** What operators change, and the housekeeping over many runs, one method for each database function. Holds no connection. */
export class OperationsStore {
  private readonly statements: Readonly<Record<string, Statement>>;

  constructor(schema: string) {
    const quoted = quoteIdentifier(schema);
    const call = (name: string, parameters: number, columns: string): Statement =>
      functionCall(schema, name, parameters, columns);
    this.statements = {
      operate: call('cyclone_operate', 7, ENGINE_COLUMNS),
      purge: call('cyclone_purge', 8, 'runs, steps, walked_to, ended, to_json(blocked::text[])'),
      forgetWorkers: call('cyclone_forget_workers', 1, '*'),
      beginRound: call('cyclone_begin_round', 2, '*'),
      stranded: call('cyclone_stranded', 3, 'run_id, workflow, stranded, to_json(problems), walked_to, ended'),
      knownStranded: checkedStatement(
        schema,
        'cyclone_known_stranded',
        `select p.run_id, p.workflow, true, to_json(p.problems)
           from ${quoted}.cyclone_run_problems(array(select f.run_id from ${quoted}.cyclone_stranded_runs f order by f.run_id limit 1000)) p
          where p.stranded`,
      ),
      repairRun: call('cyclone_repair_run', 4, ENGINE_COLUMNS),
      audit: checkedStatement(
        schema,
        'cyclone_audit',
        `select id, ${quoted}.cyclone_iso(at), actor, action, run_id, node, reason, affected, detail from ${quoted}.cyclone_audit
          where ($1::bigint is null or run_id = $1) and ($2::text is null or action = $2) and ($3::text is null or actor = $3)
            and ($4::bigint is null or id < $4)
          order by id desc limit $5`,
      ),
    };
  }

  /** Cancels, pauses, resumes or retries, with the audit row in the same transaction (R24). A refusal writes nothing. */
  async operate(session: Session, operation: Operation): Promise<EngineRow[]> {
    const { action, runId, node, additional, reason, actor, detail } = operation;
    const rows = await this.texts(session, 'operate', [action, runId, node, additional, reason, actor, json(detail)]);
    return rows.map(toEngineRow);
  }

  /** What operators did, the latest first. */
  async auditPage(session: Session, query: AuditQuery): Promise<AuditRecord[]> {
    const { runId = null, action = null, actor = null, before = null, limit } = query;
    const rows = await this.texts(session, 'audit', [runId, action, actor, before, limit]);
    return rows.map((row) => ({
      id: row[0] ?? '',
      at: row[1] ?? '',
      actor: row[2] ?? '',
      action: row[3] ?? '',
      runId: row[4] ?? null,
      node: row[5] ?? null,
      reason: row[6] ?? null,
      affected: Number(row[7]),
      detail: row[8] == null ? null : (JSON.parse(row[8]) as Record<string, unknown>),
    }));
  }

  /** Deletes one batch of runs that are over (R35). */
  async purge(session: Session, request: PurgeRequest): Promise<PurgeBatch> {
    const { after, olderThanMs, defaultAgeMs, limit, scan, dryRun, note } = request;
    const [row] = await this.texts(session, 'purge', [
      after,
      olderThanMs,
      defaultAgeMs,
      limit,
      scan,
      dryRun,
      note.actor,
      note.reason,
    ]);
    return {
      runs: Number(row?.[0]),
      steps: Number(row?.[1]),
      walkedTo: row?.[2] ?? after,
      ended: row?.[3] === 't',
      blocked: JSON.parse(row?.[4] ?? '[]') as string[],
    };
  }

  /** Forgets workers that were not seen for so long and hold no lease. Gives their number. */
  async forgetWorkers(session: Session, olderThanMs: number): Promise<number> {
    const [row] = await this.texts(session, 'forgetWorkers', [olderThanMs]);
    return Number(row?.[0]);
  }

  /** Whether this call has begun the round of that name: one in `everyMs`, whatever the number of processes. */
  async beginRound(session: Session, name: string, everyMs: number): Promise<boolean> {
    const [row] = await this.texts(session, 'beginRound', [name, everyMs]);
    return row?.[0] === 't';
  }

  /** One bounded piece of the walk over all runs for those that need a repair (R24). Changes nothing. */
  async stranded(session: Session, after: string, budget: number, limit: number): Promise<StrandedPage> {
    const rows = await this.texts(session, 'stranded', [after, budget, limit]);
    const last = rows.at(-1);
    return { runs: rows.slice(0, -1).map(toStranded), walkedTo: last?.[4] ?? after, ended: last?.[5] === 't' };
  }

  /** The stranded runs that the housekeeping of workers has found and that still are, 1,000 at most. */
  async knownStranded(session: Session): Promise<StrandedRun[]> {
    return (await this.texts(session, 'knownStranded', [])).map(toStranded);
  }

  /** Mends one run in a transaction of its own (R24). */
  async repairRun(session: Session, runId: string, note: AuditNote): Promise<Repair> {
    const rows = (await this.texts(session, 'repairRun', [runId, false, note.actor, note.reason])).map(toEngineRow);
    const [first] = rows;
    if (!first) return { outcome: 'sound', problems: [], rows };
    if (first.event !== 'repaired') {
      const outcome = first.event === 'busy' ? 'busy' : first.info.reason === 'not_found' ? 'not_found' : 'not_running';
      return { outcome, problems: [], rows: [] };
    }
    const { problems = [] } = first.info as { readonly problems?: readonly string[] };
    return { outcome: 'repaired', problems, rows: rows.slice(1) };
  }

  private texts(session: Session, name: string, values: readonly unknown[]): Promise<(string | null)[][]> {
    return session.rows(this.statements[name] as Statement, values);
  }
}

function json(value: Readonly<Record<string, unknown>> | null): string | null {
  return value === null ? null : JSON.stringify(value);
}

function toStranded([runId, workflow, stranded, problems]: readonly (string | null)[]): StrandedRun {
  return {
    runId: runId ?? '',
    workflow: workflow ?? '',
    stranded: stranded === 't',
    problems: JSON.parse(problems ?? '[]') as string[],
  };
}
