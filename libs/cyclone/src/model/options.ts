import { DEFAULT_MAX_ATTEMPTS, resolveBackoff, type Backoff, type NumericBackoff } from './backoff.js';
import { parseDuration, parsePositiveDuration, type Duration } from './duration.js';
import { InvalidOptionError } from './errors/setup-errors.js';
import { checkKeys } from './known-keys.js';
import { isStorable } from './storable-text.js';

/** A class, as a decorator names it. */
// oxlint-disable-next-line typescript/no-explicit-any -- only any lets the container construct it and every class fit
export type Type<T = unknown> = new (...args: any[]) => T;

/** How often a failing step is tried, and how far apart (R15). */
export interface RetryPolicy {
  /** Executions in all, the first included; from 1 to 1,000,000. @default 5 */
  readonly maxAttempts?: number;
  /** @default exponential from 1 s, factor 2, full jitter, at most 1 h */
  readonly backoff?: Backoff;
}

/**
 * What may be said at each level. A node's options win over submit's, these over the handler's, these over the module's
 * defaults (R9); `retry.maxAttempts` and `retry.backoff` are looked up one by one.
 */
export interface ExecutionOptions {
  /** The queue that holds the step. @default 'default' */
  readonly queue?: string;
  /** Lower numbers first; a 32-bit integer. @default 0 */
  readonly priority?: number;
  /** The longest that one execution may take, from its claim (R17). @default no limit */
  readonly timeout?: Duration;
  readonly retry?: RetryPolicy;
  /** How long after its end the run is kept for this step; the longest of its steps counts (R35). @default the module's */
  readonly retention?: Duration;
}

/** Options of `@Step()` and `@Action()`. */
export interface HandlerOptions<In = unknown> extends ExecutionOptions {
  /**
   * The kind; unique in the application. It is stored with every step: give it when you rename the method, or when your build renames
   * properties. A method's name that looks minified is refused at the start (R40). @default the name of the method
   */
  readonly name?: string;
  /** DTO class of the input: the handler gets a validated instance of it (R37). */
  readonly input?: Type<In>;
  /** The `name` of the CycloneModule that the handler belongs to. @default the unnamed one */
  readonly cyclone?: string;
}

/** Module-wide defaults: whatever a handler may say but what belongs to one handler only. */
export type HandlerDefaults = ExecutionOptions;

/** Options of one execution, checked and in the units that the database stores. */
export interface ResolvedOptions {
  readonly queue: string;
  readonly priority: number;
  readonly maxAttempts: number;
  /** null: no limit. */
  readonly timeoutMs: number | null;
  /** null: the default backoff. */
  readonly backoff: NumericBackoff | null;
  /** Of a custom backoff function: milliseconds. For a step that is stored without a backoff; a node's own wins (R9, C16). */
  readonly customDelay?: (attempt: number, error: unknown) => number;
  /** null: the module's default applies. */
  readonly retentionMs: number | null;
}

export const DEFAULT_QUEUE = 'default';
export const DEFAULT_PRIORITY = 0;
const MAX_QUEUE_BYTES = 512;

/**
 * Merges a handler's options over the module's defaults (R9) and checks the outcome.
 * @param stronger what wins over the handler, the strongest first: the node's options, then submit's
 * @param subject what the options belong to, for errors: `OrderSteps.charge`
 * @throws InvalidOptionError for a value that makes no sense
 */
export function resolveHandlerOptions(
  defaults: HandlerDefaults,
  handler: ExecutionOptions,
  stronger: readonly (ExecutionOptions | undefined)[] = [],
  subject = '',
): ResolvedOptions {
  const levels = [...stronger, handler, defaults];
  const option = (name: string): string => (subject === '' ? name : `${name} of ${subject}`);
  for (const level of levels) checkKeys(level?.retry, ['maxAttempts', 'backoff'], 'retry', subject);
  const first = <K extends keyof ExecutionOptions>(key: K): ExecutionOptions[K] => {
    for (const level of levels) if (level?.[key] !== undefined) return level[key];
    return undefined;
  };
  const firstRetry = <K extends keyof RetryPolicy>(key: K): RetryPolicy[K] => {
    for (const level of levels) if (level?.retry?.[key] !== undefined) return level.retry[key];
    return undefined;
  };
  const timeout = first('timeout');
  const retention = first('retention');
  const backoff = firstRetry('backoff');
  const { numeric, customDelay } = resolveBackoff(backoff, option('retry.backoff'));
  return {
    queue: checkQueue(first('queue') ?? DEFAULT_QUEUE, option('queue')),
    priority: checkInteger(first('priority') ?? DEFAULT_PRIORITY, -(2 ** 31), 2 ** 31 - 1, option('priority')),
    maxAttempts: checkInteger(
      firstRetry('maxAttempts') ?? DEFAULT_MAX_ATTEMPTS,
      1,
      1_000_000,
      option('retry.maxAttempts'),
    ),
    timeoutMs: timeout === undefined ? null : parsePositiveDuration(timeout, option('timeout')),
    backoff: backoff === undefined || customDelay !== undefined ? null : numeric,
    ...(customDelay === undefined ? {} : { customDelay }),
    retentionMs: retention === undefined ? null : parseDuration(retention, option('retention')),
  };
}

function checkQueue(queue: string, option: string): string {
  if (typeof queue !== 'string' || queue === '' || Buffer.byteLength(queue) > MAX_QUEUE_BYTES || !isStorable(queue)) {
    throw new InvalidOptionError(option, `must be a name of 1 to ${MAX_QUEUE_BYTES} bytes.`);
  }
  return queue;
}

function checkInteger(value: number, least: number, most: number, option: string): number {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new InvalidOptionError(option, `must be a whole number from ${least} to ${most}.`);
  }
  return value;
}
