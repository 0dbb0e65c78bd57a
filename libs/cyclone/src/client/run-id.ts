import { InvalidOptionError } from '../model/errors/setup-errors.js';
import { RunNotFoundError } from '../model/errors/run-errors.js';

const LARGEST = 2n ** 63n - 1n;

/**
 * Gives a run id back when a run can have it: a bigint of at least 1 as decimal digits (R1).
 * @throws InvalidOptionError for what is no whole number in a string
 * @throws RunNotFoundError for a number that no run has
 */
export function checkRunId(runId: unknown): string {
  if (typeof runId !== 'string' || !/^-?\d+$/.test(runId)) {
    const is = typeof runId === 'string' ? JSON.stringify(runId.slice(0, 40)) : `a ${typeof runId}`;
    throw new InvalidOptionError('runId', `must be a string of decimal digits, as RunHandle.id gives it; it is ${is}.`);
  }
  if (!/^[1-9]\d{0,18}$/.test(runId) || BigInt(runId) > LARGEST) throw new RunNotFoundError(runId.slice(0, 40));
  return runId;
}
