import { sqlStateOf } from '../model/sql-state.js';

/**
 * What an error of the database means:
 *   session    the connection is lost: what the statement did is in doubt
 *   plan       a statement of the session is not what it was: a schema change, or a pooler that gave another session (C15)
 *   conflict   another transaction is in the way; the same may succeed when it is made again
 *   cancelled  statement_timeout or an operator ended the statement
 *   shortage   the server cannot do it now: full, out of something, read-only, being administered
 *   internal   a fault of the server
 *   schema     an object or a right is missing
 *   data       the server refuses what it was given, and always will
 */
export type DatabaseFault = 'session' | 'plan' | 'conflict' | 'cancelled' | 'shortage' | 'internal' | 'schema' | 'data';

/** By SQLSTATE, the first that fits. */
const FAULTS: readonly (readonly [DatabaseFault, RegExp])[] = [
  ['session', /^(08|57P|25P03|25P04)/],
  ['plan', /^(26000|42P05)/],
  ['conflict', /^(40|55P03)/],
  ['cancelled', /^57014/],
  ['shortage', /^(25006|53|57|58)/],
  ['internal', /^XX/],
  ['schema', /^(0A|28|3D|3F|42)/],
];

/** Judges what a statement was rejected with. What is no answer of the server is a lost session. */
export function faultOf(error: unknown): DatabaseFault {
  const state = sqlStateOf(error);
  if (state === undefined || isFatal(error)) return 'session';
  if (isStalePlan(error, state)) return 'plan';
  return FAULTS.find(([, states]) => states.test(state))?.[0] ?? 'data';
}

/** Whether the answer to a statement of the engine says that the session is in order and nothing is in doubt. */
export function isAnswer(error: unknown): boolean {
  return faultOf(error) !== 'session';
}

/** Whether the server refuses for good what a statement of the engine stores: trying again cannot help. */
export function isRefusal(error: unknown): boolean {
  return faultOf(error) === 'data';
}

/** Whether a lock was not to be had in time. */
export function isLockTimeout(error: unknown): boolean {
  return sqlStateOf(error) === '55P03';
}

/** What text and JSON may not hold, or not so much of it: characters that the encoding lacks, broken syntax, limits of the server. */
const UNSTORABLE: ReadonlySet<unknown> = new Set(['22021', '22P02', '22P05', '54000', '54001']);

/** Whether it is the text or JSON of a statement that the server refuses. */
export function isUnstorable(error: unknown): boolean {
  return UNSTORABLE.has(sqlStateOf(error));
}

/**
 * Whether a statement of a handler met a fault that is not its own (R39): the server ended the session, cannot do anything now, or no
 * longer knows the session's statements. An error without an SQLSTATE says nothing: the state of its session does.
 */
export function isInfrastructure(error: unknown): boolean {
  const fault = faultOf(error);
  return fault === 'plan' || fault === 'shortage' || (fault === 'session' && sqlStateOf(error) !== undefined);
}

/** Of these the server ends the session; in another language than English it says so with other words, but with the same codes. */
function isFatal(error: unknown): boolean {
  const { severity } = error as { severity?: unknown };
  return severity === 'FATAL' || severity === 'PANIC';
}

/** 0A000 has many meanings; a plan whose result has changed is told by the place in the server that says so. */
function isStalePlan(error: unknown, state: string): boolean {
  return state === '0A000' && (error as { routine?: unknown }).routine === 'RevalidateCachedQuery';
}
