import { sqlStateOf } from '../model/sql-state.js';
import type { RawClient } from './raw-client.js';

const watched = new WeakSet<RawClient>();
const losses = new WeakMap<RawClient, Error>();

/**
 * Keeps what ends a connection while nobody uses it: the server says why only once, before it hangs up, and a later statement learns
 * no more than that the client is of no use. Without a listener a lost connection would also end the process.
 */
export function watchLoss(client: RawClient): void {
  if (watched.has(client)) return;
  watched.add(client);
  client.on('error', (error: Error) => {
    if (!losses.has(client)) losses.set(client, error);
  });
}

/** What ended a connection that is watched; undefined while it lives, and when this process has ended it. */
export function lossOf(client: RawClient): Error | undefined {
  return losses.get(client);
}

/** The error of a statement, with the server's own words where the driver only knows that the connection is gone. */
export function withLastWords(client: RawClient, error: unknown): unknown {
  const loss = losses.get(client);
  if (loss === undefined || loss === error || sqlStateOf(error) !== undefined) return error;
  return new Error(`The connection was lost: ${loss.message}`, { cause: error });
}

/** Whether the driver noticed before it sent anything that the connection is gone. */
export function isUnsent(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.message.includes('is not queryable') || isUnsent(error.cause);
}
