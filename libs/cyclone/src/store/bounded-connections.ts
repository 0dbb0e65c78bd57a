import { Connections } from './connections.js';
import { destroyClient } from './raw-client.js';
import type { Session } from './session.js';

/**
 * Connections for reading on behalf of somebody who waits: the server ends each statement after a time, and gives times with a zone in
 * UTC. Statements are not prepared, because one that a schema change made invalid could not be repeated inside a transaction.
 */
export class BoundedConnections extends Connections {
  /** @param scope `transaction`: the work is one transaction; `session`: it is none, for checks that go on after an error */
  constructor(
    private readonly of: Connections,
    private readonly timeoutMs: number,
    private readonly scope: 'transaction' | 'session',
  ) {
    super(of.dataSource, { ...of.options, preparedStatements: false });
  }

  override use<T>(work: (session: Session) => Promise<T>, purpose = 'read of an operator'): Promise<T> {
    return super.use((session) => {
      if (this.scope === 'transaction') {
        return session.transaction(
          'Read',
          work,
          `; set local statement_timeout = ${this.timeoutMs}; set local timezone = 'UTC'`,
        );
      }
      // Behind a pooler in transaction mode the next statement may be on another session, which would keep the setting.
      if (!this.of.preparedStatements) return work(session);
      return limited(session, this.timeoutMs, work);
    }, purpose);
  }
}

async function limited<T>(session: Session, timeoutMs: number, work: (session: Session) => Promise<T>): Promise<T> {
  const reset = (): Promise<unknown> => session.script('endRead', 'reset statement_timeout');
  await session.script('beginRead', `set statement_timeout = ${timeoutMs}`);
  let result: T;
  try {
    result = await work(session);
  } catch (error) {
    // The caller is told what went wrong first; a connection that is not as it was goes to nobody else.
    await reset().catch(() => destroyClient(session.client));
    throw error;
  }
  await reset();
  return result;
}
