import { parseDuration, parsePositiveDuration, type Duration } from '../model/duration.js';
import { InvalidOptionError } from '../model/errors/index.js';
import { checkKeys } from '../model/known-keys.js';

/** How runs that are over are deleted by themselves (R35). */
export interface RetentionOptions {
  /** How long after its end a run is kept for a step that names no `retention`. @default for ever */
  readonly defaultAge?: Duration;
  /** How often a round over all runs begins, by one process for all of them. At least 100 ms. @default '1h' */
  readonly interval?: Duration;
  /** Runs that one transaction deletes at most, 1 to 10,000. @default 1000 */
  readonly batchSize?: number;
}

/** Checked, with all defaults, durations in milliseconds. */
export interface ResolvedRetention {
  /** null: for ever. */
  readonly defaultAgeMs: number | null;
  readonly intervalMs: number;
  readonly batchSize: number;
}

export const RETENTION_OPTIONS = [
  'defaultAge',
  'interval',
  'batchSize',
] as const satisfies readonly (keyof RetentionOptions)[];

const SHORTEST_INTERVAL_MS = 100;
const MAX_BATCH = 10_000;

/** @throws InvalidOptionError for an option that is not known, and for a value that makes no sense */
export function resolveRetention(options: RetentionOptions): ResolvedRetention {
  checkKeys(options, RETENTION_OPTIONS, 'retention');
  const { defaultAge, interval = '1h', batchSize = 1_000 } = options;
  if (!Number.isInteger(batchSize) || batchSize < 1 || batchSize > MAX_BATCH) {
    throw new InvalidOptionError('retention.batchSize', `must be a whole number from 1 to ${MAX_BATCH}.`);
  }
  const intervalMs = parsePositiveDuration(interval, 'retention.interval');
  if (intervalMs < SHORTEST_INTERVAL_MS) {
    throw new InvalidOptionError('retention.interval', `must be at least ${SHORTEST_INTERVAL_MS} ms.`);
  }
  return {
    defaultAgeMs: defaultAge === undefined ? null : parseDuration(defaultAge, 'retention.defaultAge'),
    intervalMs,
    batchSize,
  };
}
