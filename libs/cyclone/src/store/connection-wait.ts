import type { QueryRunner } from 'typeorm';
import { NoConnectionError } from '../model/errors/index.js';
import { startTimer } from '../model/timer.js';
import { rawClientOf, type RawClient } from './raw-client.js';

/** The part of a `pg` pool that says how it is doing. */
export interface CountedPool {
  readonly options: Record<string, unknown> & { readonly max?: number };
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
}

/** Whatever waits for longer is reported (R42). */
export const REPORTED_WAIT_MS = 5_000;
/** Nothing waits for longer, unless the DataSource says otherwise. */
export const LONGEST_WAIT_MS = 30_000;
/** What the pool of `pg` says when a connection of it did not come free within its connectionTimeoutMillis. */
const POOL_TIMED_OUT = 'timeout exceeded when trying to connect';

/**
 * Connects a query runner, and reports when that takes long.
 * @throws NoConnectionError when the pool's connections are in use for too long, else what the driver says
 */
export async function waitForConnection(
  runner: QueryRunner,
  pool: CountedPool | undefined,
  purpose: string,
  onWait: ((message: string) => void) | undefined,
): Promise<RawClient> {
  const since = performance.now();
  const report = startTimer(REPORTED_WAIT_MS, () => onWait?.(describeWait(purpose, pool)), { unref: true });
  const ownLimit = Number(pool?.options['connectionTimeoutMillis'] ?? 0) > 0;
  const connecting = rawClientOf(runner);
  try {
    return await (ownLimit ? connecting : within(LONGEST_WAIT_MS, connecting));
  } catch (error) {
    // One that comes after all goes back at once.
    void connecting.catch(() => undefined).then(() => runner.release());
    if (error !== TOO_LATE && (error as Error).message !== POOL_TIMED_OUT) throw error;
    const reason = pool && !isUsedUp(pool) ? 'server' : 'pool';
    throw new NoConnectionError(purpose, performance.now() - since, reason, error === TOO_LATE ? {} : { cause: error });
  } finally {
    report.cancel();
  }
}

const TOO_LATE = Symbol('too late');

function within<T>(limitMs: number, work: Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    // oxlint-disable-next-line prefer-promise-reject-errors -- it never leaves this file
    const limit = startTimer(limitMs, () => reject(TOO_LATE));
    work.then(resolve, reject).finally(() => limit.cancel());
  });
}

function describeWait(purpose: string, pool: CountedPool | undefined): string {
  const waited = `The ${purpose} has waited ${REPORTED_WAIT_MS / 1000} s for a connection`;
  if (!pool) return `${waited}.`;
  if (!isUsedUp(pool)) return `${waited}: the database does not answer.`;
  return (
    `${waited}: all ${pool.totalCount} of the DataSource's pool are in use, and ${pool.waitingCount} callers wait for one. ` +
    `Set a larger poolSize in the DataSource's options, or look for code that keeps a connection while it waits for something else.`
  );
}

function isUsedUp({ totalCount, idleCount, options }: CountedPool): boolean {
  return idleCount === 0 && totalCount >= (options.max ?? 10);
}
