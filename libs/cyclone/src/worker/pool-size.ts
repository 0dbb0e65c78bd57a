import { InvalidOptionError } from '../model/errors/index.js';
import type { ProblemLog } from './worker-logger.js';

/** Two use two cores; more only get into each other's way. */
const LANES = 2;
/** Both lanes, one connection for completion transactions, and one for whatever their handlers ask the pool for (C14). */
const COMFORTABLE_POOL = LANES + 2;
/** The same with one lane. */
const SMALLEST_POOL = 3;

/** Refuses a pool on which a worker could not go on: a handler in its completion transaction would wait for a connection for ever (C14). */
export function poolProblem(poolSize: number): InvalidOptionError | undefined {
  if (poolSize >= SMALLEST_POOL) return undefined;
  return new InvalidOptionError(
    'dataSource',
    `has a pool of ${poolSize}, and a worker needs at least ${SMALLEST_POOL} connections of it: one or two for itself, one for ` +
      `completion transactions, and one for what their handlers ask the pool for meanwhile. Set poolSize in its options to ${COMFORTABLE_POOL} ` +
      `or more, or worker: false for a process that executes nothing.`,
  );
}

/** How many lanes a worker has on a pool of this size. @throws InvalidOptionError when the pool is too small */
export function lanesFor(poolSize: number, problems: ProblemLog): number {
  const problem = poolProblem(poolSize);
  if (problem) throw problem;
  if (poolSize >= COMFORTABLE_POOL) return LANES;
  problems.report(
    `The DataSource has a pool of ${poolSize} connections, so the worker uses one lane; give it ${COMFORTABLE_POOL} or more`,
  );
  return 1;
}
