import type { DataSource, EntityManager, EntitySubscriberInterface, QueryRunner } from 'typeorm';
import { CycloneError } from '../model/errors/cyclone-error.js';
import { InvalidOptionError } from '../model/errors/setup-errors.js';
import type { Connections } from '../store/connections.js';
import { isAnswer } from '../store/database-fault.js';
import type { Session } from '../store/session.js';
import { ConnectionLostError } from './client-errors.js';
import { DatabaseError } from './database-error.js';

/**
 * The query runner behind the `tx` of a submit.
 * @throws InvalidOptionError when there is no transaction, which would be a silent autocommit (C5), or one of another DataSource
 * @throws ConnectionLostError when the connection of the transaction is gone
 */
export function callerTransaction(tx: EntityManager | QueryRunner, connections: Connections): QueryRunner {
  const runner = queryRunnerOf(tx);
  if (!runner) {
    throw new InvalidOptionError(
      'tx',
      'must be the EntityManager or QueryRunner of a transaction. DataSource.manager has none: pass the manager that ' +
        'DataSource.transaction() or ctx.completionTx() gives.',
    );
  }
  // TypeORM releases a connection that breaks, and leaves the transaction as it was.
  if (runner.isReleased && runner.isTransactionActive) throw lost();
  if (runner.isReleased || !runner.isTransactionActive) {
    throw new InvalidOptionError(
      'tx',
      'has no transaction that is active. Call startTransaction() first, and await the submit before the transaction ends.',
    );
  }
  if (dataSourceOf(runner)?.driver !== connections.dataSource.driver) {
    throw new InvalidOptionError('tx', 'is a transaction of another DataSource than that of this Cyclone.');
  }
  return runner;
}

/** The last call on each runner: a connection takes one query at a time. */
const lastCalls = new WeakMap<QueryRunner, Promise<unknown>>();

/** A transaction whose connection is gone is rolled back, and the submit with it. */
function lost(options?: ErrorOptions): ConnectionLostError {
  return new ConnectionLostError('submit, as all of the transaction that it takes part in,', 'nothing', options);
}

function refuse(error: unknown): never {
  if (CycloneError.is(error)) throw error;
  throw isAnswer(error) ? new DatabaseError('submit', error) : lost({ cause: error });
}

/**
 * Runs `work` on the connection of the caller's transaction, after what other submits do there.
 * @throws ConnectionLostError, DatabaseError
 */
export async function inCallerTransaction<T>(
  runner: QueryRunner,
  connections: Connections,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const call = (lastCalls.get(runner) ?? Promise.resolve()).then(async () => {
    callerTransaction(runner, connections); // it may have ended while this call waited
    const result = await connections.join(runner).then(work).catch(refuse);
    if (!runner.isTransactionActive) {
      throw new InvalidOptionError(
        'tx',
        'ended while the submit was on its way, so the run may exist although the transaction did not hold it. ' +
          'Await the submit before the transaction ends.',
      );
    }
    return result;
  });
  lastCalls.set(
    runner,
    call.catch(() => undefined),
  );
  return call;
}

/**
 * Calls `action` after the caller's transaction has committed, and never when it rolls back. It hangs on TypeORM's own event, so
 * it also hears of commits that others make; a transaction that ends by raw SQL is not noticed.
 * @param action must not throw
 */
export function afterCommit(runner: QueryRunner, action: () => void): void {
  const dataSource = dataSourceOf(runner);
  if (!dataSource) return;
  let watch = watches.get(dataSource);
  if (!watch) watches.set(dataSource, (watch = new CommitWatch()));
  // First, because a subscriber that throws keeps the later ones from being asked; again, because a new initialization forgets it.
  if (!dataSource.subscribers.includes(watch)) dataSource.subscribers.unshift(watch);
  watch.add(runner, action);
}

const watches = new WeakMap<DataSource, CommitWatch>();

/** TypeORM fires its events for savepoints too, so only the end of the whole transaction counts (C5). */
class CommitWatch implements EntitySubscriberInterface {
  private readonly actions = new WeakMap<QueryRunner, (() => void)[]>();

  add(runner: QueryRunner, action: () => void): void {
    const actions = this.actions.get(runner);
    if (actions) actions.push(action);
    else this.actions.set(runner, [action]);
  }

  afterTransactionCommit({ queryRunner }: { queryRunner: QueryRunner }): void {
    for (const action of this.ended(queryRunner)) action();
  }

  afterTransactionRollback({ queryRunner }: { queryRunner: QueryRunner }): void {
    this.ended(queryRunner);
  }

  private ended(runner: QueryRunner): readonly (() => void)[] {
    if (runner.isTransactionActive) return [];
    const actions = this.actions.get(runner) ?? [];
    this.actions.delete(runner);
    return actions;
  }
}

/** Told by their shapes, not by instanceof: an application may have several copies of TypeORM. */
function queryRunnerOf(tx: unknown): QueryRunner | undefined {
  if (typeof tx !== 'object' || tx === null) return undefined;
  if (isQueryRunner(tx)) return tx;
  const { queryRunner } = tx as { queryRunner?: unknown };
  return isQueryRunner(queryRunner) ? queryRunner : undefined;
}

function isQueryRunner(value: unknown): value is QueryRunner {
  return typeof value === 'object' && value !== null && 'isTransactionActive' in value && 'startTransaction' in value;
}

/** TypeORM 0.3 calls it `connection`, 1.x `dataSource`. */
function dataSourceOf(runner: QueryRunner): DataSource | undefined {
  const { dataSource, connection } = runner as { dataSource?: DataSource; connection?: DataSource };
  return dataSource ?? connection;
}
