import { ENGINE_COLUMNS, toEngineRow, type EngineRow } from './engine-row.js';
import type { Completion } from './engine-store.js';
import { quoteIdentifier } from './identifier.js';
import { leaseMark, type Lease } from './lease.js';
import { literal } from './literal.js';
import { ReadOnlySessionError } from './session-terms.js';
import type { Session } from './session.js';

/** SQLSTATEs of cyclone_complete: the reasons why a completion transaction must not commit. */
export const LEASE_IS_LOST = 'CY001';
export const TRANSACTION_IS_FOREIGN = 'CY002';

/**
 * What the driver relies on, and how soon the server notices that the host of this process is gone without a word, as by a power cut: after
 * 10 s of silence it asks every 5 s, three times; what it has sent itself has to be confirmed within 20 s, and a statement under way looks every
 * 10 s. So the locks of such a transaction end within 30 s even if nobody has the right to end its session (C3). Over a Unix socket these have no
 * effect, and only Linux can look while a statement is under way.
 */
const TRANSACTION_SETTINGS = [
  ['client_encoding', `'UTF8'`],
  ['array_nulls', `'on'`],
  ['tcp_keepalives_idle', `'10'`],
  ['tcp_keepalives_interval', `'5'`],
  ['tcp_keepalives_count', `'3'`],
  ['tcp_user_timeout', `'20s'`],
  [
    'client_connection_check_interval',
    `case when version() ~ 'linux' then '10s' else current_setting('client_connection_check_interval') end`,
  ],
]
  .map(([name, value]) => `set_config('${name}', ${value}, true)`)
  .join(', ');

/** What the handler may have changed for its own statements, and the completion must not run into: a role without rights, a short limit. */
const OWN_AGAIN = `set_config('role', coalesce(nullif(current_setting('cyclone.role', true), ''), current_setting('role')), true),
  set_config('statement_timeout', '60s', true), set_config('lock_timeout', '0', true)`;

/** The two ends of a completion transaction, each one message (R13, C5). Holds no connection. */
export class CompletionStore {
  private readonly complete: string;
  private readonly check: string;

  constructor(private readonly schema: string) {
    this.check = `${quoteIdentifier(schema)}.cyclone_check_session()`;
    this.complete = `select ${ENGINE_COLUMNS} from ${quoteIdentifier(schema)}.cyclone_complete`;
  }

  /**
   * Begins the transaction and marks it. Gives its id, by which a commit whose answer is lost is decided (C4).
   * READ COMMITTED is said out loud, first of all: at REPEATABLE READ two siblings would strand their dependent, and behind any other
   * statement of the message the server refuses it when the default is another level.
   * Rejects with SQLSTATE 25006 when it may not write.
   * @param newPlans whether the session shall plan its statements anew: its plans may be of a time when the tables were empty (C1)
   */
  async begin(session: Session, lease: Lease, newPlans: boolean): Promise<string> {
    const mark = literal(leaseMark(this.schema, lease));
    const results = await session.script(
      'begin',
      `begin isolation level read committed;${newPlans ? ' discard plans;' : ''}
       select pg_current_xact_id()::text, current_setting('transaction_read_only'), pg_is_in_recovery(),
         set_config('application_name', ${mark}, true), set_config('cyclone.lease', ${mark}, true),
         set_config('cyclone.role', current_setting('role'), true), ${TRANSACTION_SETTINGS}`,
    );
    const [xid, readOnly, standby] = results.at(-1)?.rows[0] ?? [];
    if (readOnly === 'on') throw new ReadOnlySessionError(standby === 't');
    return xid ?? '';
  }

  /** Ends the transaction without effect. */
  async rollback(session: Session): Promise<void> {
    await session.script('rollback', 'rollback');
  }

  /**
   * Checks deferred constraints, completes the step and commits, all in one message: nothing can come between the completion and
   * its commit, and the run's lock is held for no round trip. `committed` is false when the server answered the commit with a
   * rollback, as it does for a transaction that is aborted.
   * Rejects with SQLSTATE CY001, CY002 or CY010 when the completion is refused; then nothing is committed.
   */
  async finish(
    session: Session,
    owner: string,
    done: Completion,
  ): Promise<{ readonly committed: boolean; readonly rows: EngineRow[] }> {
    const output = done.output === null ? 'null' : `${literal(done.output)}::jsonb`;
    const call = `${this.complete}(${literal(leaseMark(this.schema, done))}, ${literal(owner)}, ${literal(done.runId)}::bigint, ${literal(done.node)}, ${done.generation}, ${output})`;
    const results = await session.script(
      'complete',
      `set constraints all immediate; select ${OWN_AGAIN}; ${call} where (select ${this.check}); commit`,
    );
    return {
      committed: results.at(-1)?.command === 'COMMIT',
      rows: (results.at(-2)?.rows ?? []).map(toEngineRow),
    };
  }
}
