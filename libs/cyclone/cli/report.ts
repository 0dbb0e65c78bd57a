import {
  AlreadyTerminalError,
  ChildNotRetryableError,
  InvalidOptionError,
  MissingRightsError,
  NodeNotFoundError,
  NotPausedError,
  NotRetryableError,
  RunNotFoundError,
  SchemaVersionError,
} from '#cyclone/model/errors/index.js';
import { ConnectionLostError } from '#cyclone/client/client-errors.js';
import { sqlStateOf } from '#cyclone/model/sql-state.js';
import { ExitCode, UsageError } from './command-line.js';
import { reasonOf, UnreachableError } from './database.js';

/** The exit code that an error calls for. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof UsageError || InvalidOptionError.is(error)) return ExitCode.usage;
  if (RunNotFoundError.is(error) || NodeNotFoundError.is(error)) return ExitCode.notFound;
  const conflicts = [AlreadyTerminalError, NotPausedError, NotRetryableError, ChildNotRetryableError];
  if (conflicts.some((type) => type.is(error))) return ExitCode.conflict;
  return isOfDatabase(error) ? ExitCode.database : ExitCode.failed;
}

/** What to say about an error: only messages, never an error as a whole, whose properties may hold the connection string. */
export function messageOf(error: unknown): string {
  const message = reasonOf(error);
  if (ConnectionLostError.is(error) && error.cause !== undefined) return `${message} (${reasonOf(error.cause)})`;
  if (sqlStateOf(error) === '55P03') {
    return `${message.replace(/\.?$/, '.')} Somebody else holds the lock: \`cyclone doctor\` shows transactions that are open for long.`;
  }
  return message;
}

function isOfDatabase(error: unknown): boolean {
  return (
    error instanceof UnreachableError ||
    ConnectionLostError.is(error) ||
    SchemaVersionError.is(error) ||
    MissingRightsError.is(error) ||
    sqlStateOf(error) !== undefined
  );
}
