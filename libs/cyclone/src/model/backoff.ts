import { parseDuration, parsePositiveDuration, type Duration } from './duration.js';
import { InvalidOptionError } from './errors/setup-errors.js';
import { checkKeys } from './known-keys.js';

/** Delays that grow by `factor` with each failed attempt. */
export interface ExponentialBackoff {
  readonly type: 'exponential';
  /** The delay after the first failed attempt. */
  readonly base: Duration;
  /** Growth for each further attempt, from 1 to 100. @default 2 */
  readonly factor?: number;
  /** The longest delay. @default '1h', or `base` when that is longer */
  readonly max?: Duration;
  /** Full jitter: the delay is a random part of the computed one. @default true */
  readonly jitter?: boolean;
}

/** The same delay after each failed attempt. */
export interface FixedBackoff {
  readonly type: 'fixed';
  readonly delay: Duration;
}

/**
 * A delay of your own. `attempt` is the one that failed, from 1. It applies to failures that the worker itself reports; where
 * the database settles an attempt alone (a timeout found by the sweep), the default exponential backoff applies (C16).
 * It stands on a handler or in the module's defaults, never on a node: a graph is data.
 */
export type BackoffFunction = (attempt: number, error: unknown) => Duration;

/** How long a step waits after a failed attempt (R15). @default exponential from 1 s, factor 2, full jitter, at most 1 h */
export type Backoff = ExponentialBackoff | FixedBackoff | BackoffFunction;

/**
 * The form that is stored on the step: after attempt n the database waits `least(maxMs, baseMs * factor^(n-1))`,
 * times a random number from 0 to 1 when `jitter` is set.
 */
export interface NumericBackoff {
  readonly baseMs: number;
  readonly factor: number;
  readonly maxMs: number;
  readonly jitter: boolean;
}

/** A backoff ready for use. */
export interface ResolvedBackoff {
  readonly numeric: NumericBackoff;
  /** Of a custom function: milliseconds. It throws what the function throws, and InvalidOptionError for what is no duration. */
  readonly customDelay?: (attempt: number, error: unknown) => number;
}

const HOUR_MS = 3_600_000;

/** What applies where nothing is said (R15). */
export const DEFAULT_BACKOFF: NumericBackoff = { baseMs: 1_000, factor: 2, maxMs: HOUR_MS, jitter: true };

/** How often a step is tried where nothing is said (R15). */
export const DEFAULT_MAX_ATTEMPTS = 5;

/**
 * @param option what to call it in errors
 * @throws InvalidOptionError when it makes no sense
 */
export function resolveBackoff(backoff: Backoff | undefined, option = 'retry.backoff'): ResolvedBackoff {
  if (backoff === undefined) return { numeric: DEFAULT_BACKOFF };
  if (typeof backoff === 'function') {
    return {
      numeric: DEFAULT_BACKOFF,
      customDelay: (attempt, error) => parseDuration(backoff(attempt, error), `${option} (what the function returned)`),
    };
  }
  switch (backoff?.type) {
    case 'fixed': {
      checkKeys(backoff, ['type', 'delay'], option);
      const delayMs = parseDuration(backoff.delay, `${option}.delay`);
      return { numeric: { baseMs: delayMs, factor: 1, maxMs: delayMs, jitter: false } };
    }
    case 'exponential':
      checkKeys(backoff, ['type', 'base', 'factor', 'max', 'jitter'], option);
      return { numeric: resolveExponential(backoff, option) };
    default:
      throw new InvalidOptionError(
        option,
        "must be { type: 'exponential', … }, { type: 'fixed', delay } or a function.",
      );
  }
}

function resolveExponential(backoff: ExponentialBackoff, option: string): NumericBackoff {
  const { factor = DEFAULT_BACKOFF.factor, jitter = DEFAULT_BACKOFF.jitter } = backoff;
  const baseMs = parsePositiveDuration(backoff.base, `${option}.base`);
  const maxMs = backoff.max === undefined ? Math.max(HOUR_MS, baseMs) : parseDuration(backoff.max, `${option}.max`);
  if (!(typeof factor === 'number' && factor >= 1 && factor <= 100)) {
    throw new InvalidOptionError(`${option}.factor`, 'must be a number from 1 to 100.');
  }
  if (typeof jitter !== 'boolean') throw new InvalidOptionError(`${option}.jitter`, 'must be true or false.');
  if (maxMs < baseMs) throw new InvalidOptionError(`${option}.max`, 'must not be shorter than its base.');
  return { baseMs, factor, maxMs, jitter };
}
