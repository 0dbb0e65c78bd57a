import { InvalidOptionError } from '../model/errors/index.js';

/** Postgres cuts longer names without a word, and two of them may become one. */
const MAX_BYTES = 63;

/**
 * Whether a schema can hold Cyclone. Any name is fine that Postgres keeps as it is, however awkward: it is always quoted.
 *
 * @param option what to call it in the error
 * @returns the name
 * @throws InvalidOptionError for what is no string, empty, longer than 63 bytes of UTF-8 or reserved by Postgres, and for
 *   characters that Postgres cannot store
 */
export function checkSchemaName(name: unknown, option = 'schema'): string {
  const problem = typeof name === 'string' ? (identifierProblem(name) ?? reservedProblem(name)) : 'must be a string.';
  if (problem !== undefined) throw new InvalidOptionError(option, problem);
  return name as string;
}

/**
 * A name as SQL identifier. The only place that makes one.
 *
 * @throws InvalidOptionError when Postgres would not keep the name as it is
 */
export function quoteIdentifier(name: string): string {
  const problem = identifierProblem(name);
  if (problem !== undefined) throw new InvalidOptionError('identifier', problem);
  return `"${name.replaceAll('"', '""')}"`;
}

function identifierProblem(name: string): string | undefined {
  if (name === '') return 'must not be empty.';
  if (name.includes('\0')) return 'must not contain the character U+0000.';
  if (/\p{Surrogate}/u.test(name)) return 'must not contain a lone surrogate: Postgres stores UTF-8.';
  const bytes = Buffer.byteLength(name);
  if (bytes > MAX_BYTES) return `must not be longer than ${MAX_BYTES} bytes, it has ${bytes}: Postgres would cut it.`;
  return undefined;
}

function reservedProblem(name: string): string | undefined {
  if (name === 'information_schema' || name.startsWith('pg_')) {
    return `must not be "${name}": Postgres keeps that name for itself.`;
  }
  return undefined;
}
