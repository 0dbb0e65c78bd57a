import { Connections } from './connections.js';
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
    super(of.dataSource, { preparedStatements: false });
  }

  override use<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return super.use((session) =>
      this.scope === 'transaction' ? this.inTransaction(session, work) : this.inSession(session, work),
    );
  }

  private async inTransaction<T>(session: Session, work: (session: Session) => Promise<T>): Promise<T> {
    await session.script(
      'beginRead',
      `begin; set local statement_timeout = ${this.timeoutMs}; set local timezone = 'UTC'`,
    );
    let result: T;
    try {
      result = await work(session);
    } catch (error) {
      await session.script('endRead', 'rollback');
      throw error;
    }
    await session.script('endRead', 'commit');
    return result;
  }

  private async inSession<T>(session: Session, work: (session: Session) => Promise<T>): Promise<T> {
    // Behind a pooler in transaction mode the next statement may be on another session, which would keep the setting.
    if (!this.of.preparedStatements) return work(session);
    await session.script('beginRead', `set statement_timeout = ${this.timeoutMs}`);
    try {
      return await work(session);
    } finally {
      await session.script('endRead', 'reset statement_timeout');
    }
  }
}
