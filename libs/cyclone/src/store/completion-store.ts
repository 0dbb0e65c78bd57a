import { ENGINE_COLUMNS, toEngineRow, type EngineRow } from './engine-row.js';
import type { Completion } from './engine-store.js';
import { quoteIdentifier } from './identifier.js';
import { leaseMark, type Lease } from './lease.js';
import { literal } from './literal.js';
import type { Session } from './session.js';

/** SQLSTATEs of cyclone_complete: the reasons why a completion transaction must not commit. */
export const LEASE_IS_LOST = 'CY001';
export const TRANSACTION_IS_FOREIGN = 'CY002';

/** The two ends of a completion transaction, each one message (R13, C5). Holds no connection. */
export class CompletionStore {
  private readonly complete: string;

  constructor(private readonly schema: string) {
    this.complete = `select ${ENGINE_COLUMNS} from ${quoteIdentifier(schema)}.cyclone_complete`;
  }

  /**
   * Begins the transaction and marks it. Gives its id, by which a commit whose answer is lost is decided (C4).
   * READ COMMITTED is said out loud, first of all: at REPEATABLE READ two siblings would strand their dependent, and behind any other
   * statement of the message the server refuses it when the default is another level.
   * @param newPlans whether the session shall plan its statements anew: its plans may be of a time when the tables were empty (C1)
   */
  async begin(session: Session, lease: Lease, newPlans: boolean): Promise<string> {
    const mark = literal(leaseMark(this.schema, lease));
    const results = await session.script(
      'begin',
      `begin isolation level read committed;${newPlans ? ' discard plans;' : ''}
       select pg_current_xact_id()::text, set_config('application_name', ${mark}, true), set_config('cyclone.lease', ${mark}, true)`,
    );
    return results.at(-1)?.rows[0]?.[0] ?? '';
  }

  /** Ends the transaction without effect. */
  async rollback(session: Session): Promise<void> {
    await session.script('rollback', 'rollback');
  }

  /**
   * Checks deferred constraints, completes the step and commits, all in one message: nothing can come between the completion and
   * its commit, and the run's lock is held for no round trip. `committed` is false when the server answered the commit with a
   * rollback, as it does for a transaction that is aborted (S5).
   * Rejects with SQLSTATE CY001 or CY002 when the completion is refused; then nothing is committed.
   */
  async finish(
    session: Session,
    owner: string,
    done: Completion,
  ): Promise<{ readonly committed: boolean; readonly rows: EngineRow[] }> {
    const output = done.output === null ? 'null' : `${literal(done.output)}::jsonb`;
    const call = `${this.complete}(${literal(leaseMark(this.schema, done))}, ${literal(owner)}, ${literal(done.runId)}::bigint, ${literal(done.node)}, ${done.generation}, ${output})`;
    const results = await session.script('complete', `set constraints all immediate; ${call}; commit`);
    return {
      committed: results.at(-1)?.command === 'COMMIT',
      rows: (results[1]?.rows ?? []).map(toEngineRow),
    };
  }
}
