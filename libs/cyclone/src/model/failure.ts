import { types } from 'node:util';
import { PermanentError, RetryAfterError, SnoozeError } from './errors/handler-errors.js';
import { secretsOf, withoutSecrets } from './redact.js';
import { MAX_ERROR_BYTES, MAX_STACK_BYTES, storableText } from './storable-text.js';

/** What a thrown value means for its step, with texts that can be stored (R15, R16). */
export interface Failure {
  /** For `cyclone_steps.error`: the message, or one line `handler panicked: …`. */
  readonly error: string;
  readonly errorKind: 'retryable' | 'permanent' | 'timeout';
  /** For `cyclone_steps.panic_stack`: set for a programming fault only. */
  readonly panicStack: string | null;
  /** Of a RetryAfterError: when to try again. */
  readonly retryAfterMs?: number;
  /** Of a snooze: when the step is due again; no attempt is charged. */
  readonly snoozeMs?: number;
}

const FAULTS: ReadonlySet<unknown> = new Set(['TypeError', 'ReferenceError', 'RangeError', 'SyntaxError']);

/**
 * Classifies what a handler threw (R15, R16). It never throws, whatever it is given, and lets no query parameter through (S17).
 * @param options.permanent the engine itself knows that no retry can help, as with an output that was refused
 */
export function describeFailure(thrown: unknown, options: { readonly permanent?: boolean } = {}): Failure {
  if (SnoozeError.is(thrown)) return { ...ordinary(thrown), snoozeMs: thrown.delayMs };
  if (RetryAfterError.is(thrown)) return { ...ordinary(thrown), retryAfterMs: thrown.delayMs };
  if (options.permanent === true || PermanentError.is(thrown)) return { ...ordinary(thrown), errorKind: 'permanent' };
  if (!isError(thrown)) {
    return panic(
      describeValue(thrown),
      `The handler threw no Error (${kindOf(thrown)}), so there is no stack.`,
      thrown,
    );
  }
  return isFault(thrown) ? panic(nameAndMessage(thrown), text(read(thrown, 'stack')), thrown) : ordinary(thrown);
}

function ordinary(thrown: unknown): Failure {
  const message = isError(thrown) ? messageOf(thrown) : describeValue(thrown);
  return {
    error: storableText(withoutSecrets(message, secretsOf(thrown)), MAX_ERROR_BYTES),
    errorKind: 'retryable',
    panicStack: null,
  };
}

function panic(value: string, stack: string, thrown: unknown): Failure {
  const secrets = secretsOf(thrown);
  const line = withoutSecrets(value, secrets).replace(/\s*[\r\n\u2028\u2029]+\s*/g, ' ');
  return {
    error: storableText(`handler panicked: ${line}`, MAX_ERROR_BYTES),
    errorKind: 'retryable',
    panicStack: storableText(withoutSecrets(stack, secrets), MAX_STACK_BYTES),
  };
}

/** Errors of any realm; a DOMException, such as an AbortError, is one although the engine does not call it native. */
function isError(thrown: unknown): thrown is object {
  if (types.isNativeError(thrown)) return true;
  if (typeof thrown !== 'object' || thrown === null) return false;
  try {
    return Object.prototype.toString.call(thrown) === '[object DOMException]';
  } catch {
    return false;
  }
}

/** A failed fetch is a TypeError too, but its cause carries a code. */
function isFault(thrown: object): boolean {
  const name = read(thrown, 'name');
  if (!FAULTS.has(name)) return false;
  return !(name === 'TypeError' && isCode(read(read(thrown, 'cause'), 'code')));
}

function isCode(value: unknown): boolean {
  return (typeof value === 'string' && value !== '') || typeof value === 'number';
}

/** An AggregateError of failed connections has an empty message, only a code. */
function messageOf(thrown: object): string {
  const message = text(read(thrown, 'message'));
  if (message !== '') return message;
  const code = read(thrown, 'code');
  return isCode(code) ? `${nameOf(thrown)}: ${text(code)}` : nameOf(thrown);
}

function nameAndMessage(thrown: object): string {
  const message = text(read(thrown, 'message'));
  return message === '' ? nameOf(thrown) : `${nameOf(thrown)}: ${message}`;
}

function nameOf(thrown: object): string {
  return text(read(thrown, 'name')) || 'Error';
}

/** A thrown value that is no Error: a string as it is, anything else as JSON (S15). */
function describeValue(value: unknown): string {
  if (typeof value === 'object' && value !== null) {
    try {
      const json: unknown = JSON.stringify(value);
      if (typeof json === 'string') return json;
    } catch {
      return 'an object that cannot be shown';
    }
  }
  return value === undefined ? 'undefined' : text(value);
}

function kindOf(value: unknown): string {
  return value === null ? 'null' : typeof value;
}

/** A property of anything; undefined where reading it throws. */
function read(value: unknown, key: string): unknown {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined;
  try {
    return (value as Record<string, unknown>)[key];
  } catch {
    return undefined;
  }
}

/** Anything as text; a function by its kind only, because its source is no message. */
function text(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === undefined) return '';
  if (typeof value === 'function') return 'a function';
  try {
    return String(value);
  } catch {
    return 'an object that cannot be shown';
  }
}
