import { types } from 'node:util';
import { sqlStateOf } from './sql-state.js';

/** How far causes are followed, how many members of an AggregateError are told, and how many errors in all. */
const MAX_DEPTH = 5;
const MAX_MEMBERS = 10;
const MAX_ERRORS = 30;
/** Longest text of one cause, in characters. */
const MAX_CAUSE = 1_000;

/** What a symbolic code looks like: `ECONNREFUSED`, `UND_ERR_SOCKET`. An SQLSTATE says less than the message it comes with. */
const CODE = /^[A-Z][A-Z0-9_]{2,63}$/;

/** Errors of any realm; a DOMException, such as an AbortError, is one although the engine does not call it native. */
export function isError(thrown: unknown): thrown is object {
  if (types.isNativeError(thrown)) return true;
  if (typeof thrown !== 'object' || thrown === null) return false;
  try {
    return Object.prototype.toString.call(thrown) === '[object DOMException]';
  } catch {
    return false;
  }
}

/**
 * The message of an error with its code, its causes and the members of an AggregateError: of `fetch failed` only the cause says why.
 * Nothing but messages, codes and names is read. Never throws.
 * @param clean applied to each message before anything is cut
 * @param named whether the name stands before the message
 */
export function errorText(error: object, clean: (text: string) => string, named = false): string {
  try {
    return new Description(clean).of(error, MAX_DEPTH, named);
  } catch {
    return clean(headline(error, named)); // a hostile list of members
  }
}

/** The stack of an error and those of its causes. Never throws. */
export function stackText(error: object): string {
  let stack = text(read(error, 'stack'));
  const seen = new Set<unknown>([error]);
  let cause = read(error, 'cause');
  for (let depth = 0; depth < MAX_DEPTH && isError(cause) && !seen.has(cause); depth++) {
    seen.add(cause);
    stack += `\nCaused by: ${text(read(cause, 'stack')) || headline(cause, true)}`;
    cause = read(cause, 'cause');
  }
  return stack;
}

class Description {
  private readonly seen = new Set<object>();

  constructor(private readonly clean: (text: string) => string) {}

  of(error: object, depth: number, named: boolean): string {
    this.seen.add(error);
    let whole = this.clean(headline(error, named));
    const members = this.membersOf(error, depth);
    if (members.length > 0) whole += ` [${members.join('; ')}]`;
    const cause = this.causeOf(error, depth, whole);
    return cause === '' || whole.includes(cause) ? whole : `${whole}; caused by ${cause}`;
  }

  private membersOf(error: object, depth: number): string[] {
    const errors = read(error, 'errors');
    if (!Array.isArray(errors) || !isError(error)) return [];
    const told = new Set<string>();
    for (const member of (errors as unknown[]).slice(0, MAX_MEMBERS)) {
      const one = this.inner(member, depth);
      if (one !== '') told.add(one);
    }
    if (errors.length > MAX_MEMBERS) told.add(`and ${errors.length - MAX_MEMBERS} more`);
    return [...told];
  }

  /** An error that ends with the message of its cause has told it. */
  private causeOf(error: object, depth: number, whole: string): string {
    const cause = read(error, 'cause');
    const message = isError(cause) ? this.clean(text(read(cause, 'message'))) : '';
    return this.inner(cause, depth, message === '' || !whole.endsWith(message));
  }

  private inner(value: unknown, depth: number, named = true): string {
    if (typeof value === 'string') return cut(this.clean(value));
    if (depth === 0 || !isError(value) || this.seen.has(value) || this.seen.size >= MAX_ERRORS) return '';
    return cut(this.of(value, depth - 1, named && !PLAIN.has(nameOf(value))));
  }
}

/** Names that say nothing. */
const PLAIN: ReadonlySet<string> = new Set(['Error', 'AggregateError']);

/** An AggregateError of failed connections has an empty message, only a code. */
function headline(error: object, named: boolean): string {
  const message = text(read(error, 'message'));
  const name = nameOf(error);
  const code = read(error, 'code');
  if (message === '') return isCode(code) ? `${name}: ${text(code)}` : name;
  const line = named ? `${name}: ${message}` : message;
  return typeof code === 'string' && isTelling(code, error) && !message.includes(code) ? `${line} (${code})` : line;
}

function isTelling(code: string, error: object): boolean {
  if (!CODE.test(code) || code.startsWith('CYCLONE_')) return false;
  try {
    return sqlStateOf(error) === undefined;
  } catch {
    return false;
  }
}

export function isCode(value: unknown): boolean {
  return (typeof value === 'string' && value !== '') || typeof value === 'number';
}

function nameOf(error: object): string {
  return text(read(error, 'name')) || 'Error';
}

function cut(part: string): string {
  return part.length > MAX_CAUSE ? `${part.slice(0, MAX_CAUSE)}…` : part;
}

/** A property of anything; undefined where reading it throws. */
export function read(value: unknown, key: string): unknown {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined;
  try {
    return (value as Record<string, unknown>)[key];
  } catch {
    return undefined;
  }
}

/** Anything as text; a function by its kind only, because its source is no message. */
export function text(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === undefined) return '';
  if (typeof value === 'function') return 'a function';
  try {
    return String(value);
  } catch {
    return 'an object that cannot be shown';
  }
}
