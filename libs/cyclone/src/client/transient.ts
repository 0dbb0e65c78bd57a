import { CycloneError } from '../model/errors/cyclone-error.js';
import { sleep } from '../model/timer.js';
import type { Connections } from '../store/connections.js';
import { faultOf, isAnswer } from '../store/database-fault.js';
import { isUnsent } from '../store/session-loss.js';
import type { Session } from '../store/session.js';
import { ConnectionLostError } from './client-errors.js';
import { DatabaseError } from './database-error.js';

const TRIES = 5;

/** Makes a call that is a transaction of its own, again when the server undid it because of another transaction. */
export async function repeatTransient<T>(call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (attempt === TRIES || faultOf(error) !== 'conflict') throw error;
      await sleep(10 * 2 ** attempt * (0.5 + Math.random()));
    }
  }
}

/**
 * Runs `work` on a connection of the pool and tells what is known when the connection fails.
 * @throws ConnectionLostError, DatabaseError
 */
export async function onConnection<T>(
  connections: Connections,
  operation: string,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  let connected = false;
  try {
    return await connections.use((session) => {
      connected = true;
      return work(session);
    }, operation);
  } catch (error) {
    if (connected && CycloneError.is(error)) throw error;
    throw isAnswer(error) && connected
      ? new DatabaseError(operation, error)
      : new ConnectionLostError(operation, outcomeOf(error, connected), { cause: error });
  }
}

/** What a call that failed without an answer of the server may have done. */
export function outcomeOf(error: unknown, connected: boolean): 'nothing' | 'unknown' {
  return !connected || isUnsent(error) ? 'nothing' : 'unknown';
}
