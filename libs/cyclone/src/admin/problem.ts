import type { HttpException } from '@nestjs/common';
import { DatabaseError } from '../client/database-error.js';
import { CycloneError } from '../model/errors/cyclone-error.js';
import { sqlStateOf } from '../model/sql-state.js';
import { integer, object, text, type Schema } from './schema.js';

/** Every code that a problem may have, with its status and title. The codes of errors are those of the error classes. */
export const PROBLEMS = {
  CYCLONE_INVALID_REQUEST: [400, 'The request is not valid'],
  CYCLONE_INVALID_OPTION: [400, 'A parameter makes no sense'],
  CYCLONE_UNAUTHENTICATED: [401, 'Who are you?'],
  CYCLONE_FORBIDDEN: [403, 'This is not allowed'],
  CYCLONE_HEADER_MISSING: [403, 'A header that foreign pages cannot send is missing'],
  CYCLONE_RUN_NOT_FOUND: [404, 'There is no such run'],
  CYCLONE_NODE_NOT_FOUND: [404, 'The run has no such node'],
  CYCLONE_READ_ONLY: [405, 'This API is read-only'],
  CYCLONE_ALREADY_TERMINAL: [409, 'The run has already ended'],
  CYCLONE_NOT_PAUSED: [409, 'The run is not paused'],
  CYCLONE_NOT_RETRYABLE: [409, 'There is nothing to retry'],
  CYCLONE_CHILD_NOT_RETRYABLE: [409, 'A child run cannot be retried by itself'],
  CYCLONE_UNSUPPORTED_MEDIA_TYPE: [415, 'The body must be JSON'],
  CYCLONE_INTERNAL: [500, 'Something went wrong'],
  CYCLONE_CONNECTION_LOST: [503, 'The database cannot be reached'],
  CYCLONE_DATABASE: [503, 'The database cannot do this now'],
  CYCLONE_SCHEMA_VERSION: [503, 'The schema and this library do not fit together'],
  CYCLONE_QUERY_TIMEOUT: [503, 'The database took too long'],
} as const satisfies Record<string, readonly [number, string]>;

export type ProblemCode = keyof typeof PROBLEMS;

/** RFC 9457, with the stable code and, where there is one, the run and the node. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly run_id?: string;
  readonly node?: string;
  /** What is wrong, one sentence for each. */
  readonly problems?: readonly string[];
}

export const PROBLEM_SCHEMA: Schema = object(
  {
    type: text,
    title: text,
    status: integer,
    code: { ...text, description: `One of ${Object.keys(PROBLEMS).join(', ')}, or CYCLONE_HTTP_<status>.` },
    detail: text,
    run_id: text,
    node: text,
    problems: { type: 'array', items: text },
  },
  ['run_id', 'node', 'problems'],
);

/** What this API itself refuses. */
export class RefusedRequest extends Error {
  constructor(
    readonly code: ProblemCode,
    detail: string,
    readonly problems?: readonly string[],
  ) {
    super(detail);
  }
}

const BY_STATUS: Readonly<Record<number, ProblemCode>> = {
  400: 'CYCLONE_INVALID_REQUEST',
  401: 'CYCLONE_UNAUTHENTICATED',
  403: 'CYCLONE_FORBIDDEN',
  415: 'CYCLONE_UNSUPPORTED_MEDIA_TYPE',
};

/** What to answer for something that was thrown; undefined for what nobody expected and no caller may see. */
export function problemOf(thrown: unknown): Problem | undefined {
  if (thrown instanceof RefusedRequest) {
    return { ...known(thrown.code, thrown.message), ...(thrown.problems ? { problems: thrown.problems } : {}) };
  }
  if (sqlStateOf(thrown) === '57014') {
    return known('CYCLONE_QUERY_TIMEOUT', 'The query was cancelled. Narrow it down: fewer rows, a state, a kind.');
  }
  if (DatabaseError.is(thrown)) return ofDatabase(thrown);
  if (CycloneError.is(thrown)) {
    if (!Object.hasOwn(PROBLEMS, thrown.code)) return undefined;
    const { runId, node } = thrown as { runId?: unknown; node?: unknown };
    return {
      ...known(thrown.code as ProblemCode, thrown.message),
      ...(typeof runId === 'string' ? { run_id: runId } : {}),
      ...(typeof node === 'string' ? { node } : {}),
    };
  }
  return isHttpException(thrown) ? ofHttp(thrown) : undefined;
}

/** What does not pass by itself is a fault: it belongs into the log. The words of the server may quote values. */
function ofDatabase({ transient, sqlState }: DatabaseError): Problem | undefined {
  if (!transient) return undefined;
  return known('CYCLONE_DATABASE', `The database answered with SQLSTATE ${sqlState}. Try again later.`);
}

/** The answer to a fault: its cause stays in the log of the application. */
export function internalProblem(id: string): Problem {
  return known('CYCLONE_INTERNAL', `The application's log says more: look for ${id}.`);
}

/** Of whichever copy of @nestjs/common. */
function isHttpException(thrown: unknown): thrown is HttpException {
  return thrown instanceof Error && typeof (thrown as Partial<HttpException>).getStatus === 'function';
}

function known(code: ProblemCode, detail: string): Problem {
  const [status, title] = PROBLEMS[code];
  return { type: typeOf(code), title, status, code, detail };
}

/** A guard's refusal, in its own words. */
function ofHttp(exception: HttpException): Problem {
  const status = exception.getStatus();
  const code = BY_STATUS[status];
  if (code) return known(code, exception.message);
  return {
    type: 'about:blank',
    title: exception.name.replace(/Exception$/, ''),
    status,
    code: `CYCLONE_HTTP_${status}`,
    detail: exception.message,
  };
}

const typeOf = (code: string): string =>
  `urn:nestjs-cyclone:problem:${code.slice(8).toLowerCase().replaceAll('_', '-')}`;
