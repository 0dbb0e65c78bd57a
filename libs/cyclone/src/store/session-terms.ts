/** SQLSTATE of cyclone_check_session: the session would change what is stored. */
export const SESSION_IS_UNFIT = 'CY010';
/** The session cannot write: its default is read-only, or its server is a standby. */
export const SESSION_IS_READ_ONLY = '25006';

/** What a session is met with that cannot write, before it is asked to: with the SQLSTATE that the server would have answered. */
export class ReadOnlySessionError extends Error {
  readonly code = SESSION_IS_READ_ONLY;
  readonly severity = 'ERROR';
  constructor(standby: boolean) {
    super(
      standby
        ? 'The database is a standby, which is read-only. Connect to the primary.'
        : 'The session is read-only: default_transaction_read_only is on for the server, the database or the role.',
    );
  }
}

/** A statement of the engine may take so long in a session whose own limit is in the way. */
const STATEMENT_LIMIT_MS = 60_000;

/**
 * What the engine relies on, whatever the role, the database or whoever had the connection before has set. Not the right to write: who has
 * made a database read-only means it.
 */
const TERMS = [
  `client_encoding = 'UTF8'`,
  'array_nulls = on',
  'standard_conforming_strings = on',
  'row_security = on',
  `datestyle = 'ISO'`,
  `intervalstyle = 'postgres'`,
  `bytea_output = 'hex'`,
  'extra_float_digits = 1',
  `statement_timeout = ${STATEMENT_LIMIT_MS}`,
  'lock_timeout = 0',
  'idle_in_transaction_session_timeout = 0',
];

/** Only a superuser may set it, and so nobody else can have left it. */
const TRIGGERS_FIRE = (scope: 'local' | 'session'): string =>
  `select set_config('session_replication_role', 'origin', ${scope === 'local'}) where current_setting('session_replication_role') = 'replica'`;

/** Begins a transaction on the engine's own terms, which end with it. */
export const BEGIN_ON_OWN_TERMS = [
  'begin isolation level read committed',
  ...TERMS.map((term) => `set local ${term}`),
  TRIGGERS_FIRE('local'),
].join('; ');

/** The same for a session that the engine keeps for itself. */
export const KEEP_ON_OWN_TERMS = [
  `set default_transaction_isolation = 'read committed'`,
  ...TERMS.map((term) => `set ${term}`),
  TRIGGERS_FIRE('session'),
].join('; ');

/** Whether the transaction is read-only, and whether the server is a standby. */
export const MAY_IT_WRITE = `select current_setting('transaction_read_only'), pg_is_in_recovery()`;

/** What the session's settings may have caused: the same on own terms may succeed. */
const SETTINGS: ReadonlySet<unknown> = new Set([
  SESSION_IS_UNFIT,
  '22P02', // NULL in an array that is not null
  '22P05', // a character that the session's encoding lacks
  '22021', // text that is none in the session's encoding
  '40001', // an isolation that the call does not expect
  '55P03', // lock_timeout
  '57014', // statement_timeout
]);

/** What another connection may not have: the right to write, a role, or a limit so low that nothing can be set. */
const CONNECTION: ReadonlySet<unknown> = new Set([SESSION_IS_READ_ONLY, '42501', '57014']);

/** Whether a call that was answered so should be made again on own terms. */
export function isOfSettings(error: unknown): boolean {
  return SETTINGS.has((error as { code?: unknown }).code);
}

/** Whether a call that was answered so should be made again on a connection that nobody has had. */
export function isOfConnection(error: unknown): boolean {
  return CONNECTION.has((error as { code?: unknown }).code);
}

/** Whether the session cannot write, so that nobody should have its connection again. */
export function isReadOnly(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === SESSION_IS_READ_ONLY;
}
