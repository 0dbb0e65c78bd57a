import { CycloneError, identify } from '../model/errors/cyclone-error.js';
import { secretsOf, withoutSecrets } from '../model/redact.js';
import { sqlStateOf } from '../model/sql-state.js';
import { faultOf, type DatabaseFault } from '../store/database-fault.js';

const AGAIN = 'Try again; in a transaction of your own, begin that anew.';

/** What to do. */
const REMEDIES: Readonly<Record<DatabaseFault, string>> = {
  session: AGAIN,
  plan: `The session or the schema has changed. ${AGAIN}`,
  conflict: `Another transaction was in the way. ${AGAIN}`,
  cancelled: `It took longer than statement_timeout allows, or somebody cancelled it. ${AGAIN}`,
  shortage: 'Look at the server: its disk, its connections, whether it is read-only or shuts down. Then try again.',
  internal: "That is a fault of the server: look into the server's log.",
  schema: 'An object or a right is missing: `npx nestjs-cyclone doctor` says which.',
  data: 'The same call will be refused again.',
};

const TRANSIENT: ReadonlySet<DatabaseFault> = new Set(['session', 'plan', 'conflict', 'cancelled', 'shortage']);

/** The database answered a call with an error, which is its `cause`. What the call asked for did not happen. */
export class DatabaseError extends CycloneError {
  static override readonly code = 'CYCLONE_DATABASE';
  static {
    identify(this, 'DatabaseError');
  }
  /** The SQLSTATE, for example `53100`: https://www.postgresql.org/docs/current/errcodes-appendix.html */
  readonly sqlState: string;
  /** Whether it passes by itself: a conflict, a lack of resources, a server that is read-only or shuts down, a timeout. */
  override readonly transient: boolean;

  constructor(
    /** What was asked for, for example `submit of place_order`. */
    readonly operation: string,
    /** What the driver rejected with. */
    cause: unknown,
  ) {
    const sqlState = sqlStateOf(cause) ?? '';
    const fault = faultOf(cause);
    // Servers quote values in their messages, and may be asked for the driver's error where that does no harm.
    const message = withoutSecrets(cause instanceof Error ? cause.message : String(cause), secretsOf(cause));
    super(`The database refused the ${operation} (SQLSTATE ${sqlState}): ${message}. ${REMEDIES[fault]}`, { cause });
    this.sqlState = sqlState;
    this.transient = TRANSIENT.has(fault);
  }
}
