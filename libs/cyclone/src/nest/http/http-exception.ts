import { HttpException } from '@nestjs/common';
import { DatabaseError } from '../../client/database-error.js';
import { CycloneError, InputValidationError, InvalidPayloadError } from '../../model/errors/index.js';

/**
 * The status and the text for a client of the application, by the code of the error. Texts of the errors themselves are for developers: they
 * name options, commands, and what a handler threw. A code that is missing here is a fault of the application, and stays one.
 */
const ANSWERS: Readonly<Record<string, readonly [status: number, message: string]>> = {
  CYCLONE_INVALID_OPTION: [400, 'A parameter is not valid'],
  CYCLONE_RUN_NOT_FOUND: [404, 'There is no such run'],
  CYCLONE_NODE_NOT_FOUND: [404, 'The run has no such node'],
  CYCLONE_ALREADY_TERMINAL: [409, 'The run has already ended'],
  CYCLONE_NOT_PAUSED: [409, 'The run is not paused'],
  CYCLONE_NOT_RETRYABLE: [409, 'There is nothing to retry'],
  CYCLONE_CHILD_NOT_RETRYABLE: [409, 'A child run cannot be retried by itself'],
  CYCLONE_TRANSACTION_CONFLICT: [409, 'Another request with this key is under way; try again'],
  CYCLONE_RUN_FAILED: [409, 'The run has failed'],
  CYCLONE_RUN_CANCELLED: [409, 'The run was cancelled'],
  CYCLONE_RESULT_UNAVAILABLE: [409, 'The run has no result'],
  CYCLONE_PAYLOAD_TOO_LARGE: [413, 'The input is too large'],
  CYCLONE_INPUT_VALIDATION: [422, 'The input is not valid'],
  CYCLONE_INVALID_PAYLOAD: [422, 'The input cannot be stored'],
  CYCLONE_CONNECTION_LOST: [503, 'The database cannot be reached'],
  CYCLONE_DATABASE: [503, 'The database cannot do this now; try again'],
  CYCLONE_NO_CONNECTION: [503, 'The service has too much to do; try again'],
  CYCLONE_CLIENT_CLOSED: [503, 'The service is shutting down'],
  CYCLONE_SCHEMA_VERSION: [503, 'The service is not ready'],
  CYCLONE_MISSING_RIGHTS: [503, 'The service is not ready'],
  CYCLONE_WAIT_TIMEOUT: [504, 'The run has not ended yet'],
};

/** The body of an answer to a Cyclone error. */
export interface CycloneHttpBody {
  readonly statusCode: number;
  /** The stable code of the error, for example `CYCLONE_RUN_NOT_FOUND`. */
  readonly code: string;
  readonly message: string;
  /** The run that the error is about. */
  readonly runId?: string;
  /** What is wrong with the input, one sentence for each constraint. */
  readonly problems?: readonly string[];
}

/**
 * The HttpException that answers an error of Cyclone; the error is its `cause`. Undefined for anything else, and for errors that no
 * client has caused, such as an InvalidGraphError: these stay a 500. The body tells nothing that a handler or the database said.
 */
export function toHttpException(thrown: unknown): HttpException | undefined {
  if (!CycloneError.is(thrown) || !Object.hasOwn(ANSWERS, thrown.code)) return undefined;
  if (DatabaseError.is(thrown) && !thrown.transient) return undefined;
  const { code } = thrown;
  const [statusCode, message] = ANSWERS[code] as readonly [number, string];
  const { runId } = thrown as { runId?: unknown };
  const problems = problemsOf(thrown);
  const body: CycloneHttpBody = {
    statusCode,
    code,
    message,
    ...(typeof runId === 'string' ? { runId } : {}),
    ...(problems ? { problems } : {}),
  };
  return new HttpException(body, statusCode, { cause: thrown });
}

/** What the client can mend by itself. */
function problemsOf(error: CycloneError): readonly string[] | undefined {
  if (InputValidationError.is(error)) return error.problems;
  if (InvalidPayloadError.is(error)) return [`${error.path} ${error.problem}`];
  return undefined;
}
