import { PermanentError, RetryAfterError, SnoozeError } from './errors/handler-errors.js';
import { errorText, isCode, isError, read, stackText, text } from './error-text.js';
import { secretsOf, withoutSecrets } from './redact.js';
import { MAX_ERROR_BYTES, MAX_STACK_BYTES, storableText } from './storable-text.js';

/** What a thrown value means for its step, with texts that can be stored (R15, R16). */
export interface Failure {
  /** For `cyclone_steps.error`: the message and its causes, or one line `handler panicked: …`. */
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
 * Classifies what a handler threw (R15, R16). It never throws, whatever it is given, and lets no query parameter through.
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
  if (!isFault(thrown)) return ordinary(thrown);
  return panic(errorText(thrown, cleanerOf(thrown), true), stackText(thrown), thrown);
}

function ordinary(thrown: unknown): Failure {
  const clean = cleanerOf(thrown);
  return {
    error: storableText(isError(thrown) ? errorText(thrown, clean) : clean(describeValue(thrown)), MAX_ERROR_BYTES),
    errorKind: 'retryable',
    panicStack: null,
  };
}

function cleanerOf(thrown: unknown): (text: string) => string {
  const secrets = secretsOf(thrown);
  return (message) => withoutSecrets(message, secrets);
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

/** A failed fetch is a TypeError too, but its cause carries a code. */
function isFault(thrown: object): boolean {
  const name = read(thrown, 'name');
  if (!FAULTS.has(name)) return false;
  return !(name === 'TypeError' && isCode(read(read(thrown, 'cause'), 'code')));
}

/** A thrown value that is no Error: a string as it is, anything else as JSON. */
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
