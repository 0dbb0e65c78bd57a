import { AsyncLocalStorage } from 'node:async_hooks';
import { errorMonitor } from 'node:events';
import type { QueryRunner } from 'typeorm';
import type { TransactionProblem } from '../../model/errors/index.js';
import type { RawClient } from '../../store/raw-client.js';
import { guardClient } from './guarded-client.js';
import { serializeNested } from './nested-transactions.js';
import { transactionControl } from './transaction-control.js';

/** Whom the wrapped runner asks and tells. */
export interface RunnerGuard {
  /** Whether subscribers of TypeORM may hear of the transaction. */
  readonly hasSubscribers: boolean;
  /** Sends the engine's own BEGIN, completion with COMMIT, and ROLLBACK, in place of TypeORM's. */
  begin(): Promise<void>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
  /** Notes that the handler broke the transaction, and gives the error to throw. */
  problem(problem: TransactionProblem): Error;
  /** Why no statement of the handler's may be sent now; undefined when it may. */
  refusal(): Error | undefined;
  /** Counts a statement as under way until it settles. */
  track<T>(statement: Promise<T>): Promise<T>;
  /** A stream of the handler's has failed. */
  streamFailed(error: unknown): void;
}

/** TypeORM declares it protected; it is how many transactions are open in one another. */
interface Depth {
  transactionDepth: number;
}

/**
 * Set while subscribers may hear of the end of a transaction: they may write although the handler no longer may. It slows down every
 * promise of the process, so it is left alone where there are no subscribers.
 */
const engineAtWork = new AsyncLocalStorage<QueryRunner>();

/**
 * A query runner whose transaction belongs to the engine (C5): the handler uses it freely but cannot end it, and TypeORM's
 * subscribers hear of begin, commit and rollback as ever. Only this instance is changed.
 */
export class GuardedRunner {
  private readonly original: {
    startTransaction(level: 'READ COMMITTED'): Promise<void>;
    commitTransaction(): Promise<void>;
    rollbackTransaction(): Promise<void>;
    release(): Promise<void>;
    query(...args: unknown[]): Promise<unknown>;
    stream(...args: unknown[]): Promise<unknown>;
  };
  /** True while a method of the runner itself asks for its connection. */
  private inside = false;
  private begun = false;
  /** The statement that TypeORM is about to send for the engine. */
  private awaited: 'COMMIT' | 'ROLLBACK' | undefined;
  private readonly streams = new Set<{ destroy(): void }>();

  /** @param runner connected, and used by nobody else */
  constructor(
    private readonly runner: QueryRunner,
    private readonly client: RawClient,
    private readonly guard: RunnerGuard,
  ) {
    const bind = <K extends keyof QueryRunner>(key: K): never =>
      (runner[key] as (...args: unknown[]) => unknown).bind(runner) as never;
    this.original = {
      startTransaction: bind('startTransaction'),
      commitTransaction: bind('commitTransaction'),
      rollbackTransaction: bind('rollbackTransaction'),
      release: bind('release'),
      query: bind('query'),
      stream: bind('stream'),
    };
    const methods: Partial<Record<keyof QueryRunner, (...args: never[]) => unknown>> = {
      query: this.query,
      stream: this.stream,
      connect: this.connect,
      commitTransaction: () => this.endNested('commitTransaction', 'committed'),
      rollbackTransaction: () => this.endNested('rollbackTransaction', 'rolled_back'),
      release: () => Promise.reject(guard.problem('released')),
    };
    for (const [name, value] of Object.entries(methods))
      Object.defineProperty(runner, name, { value, configurable: true });
    serializeNested(runner.manager);
  }

  /** How many transactions are open in one another: 1 is right when the handler returns. */
  get depth(): number {
    return (this.runner as unknown as Depth).transactionDepth;
  }

  async start(): Promise<void> {
    await this.original.startTransaction('READ COMMITTED');
    this.begun = true;
  }

  /** Commits through TypeORM. It also rejects when a subscriber throws after the commit. */
  commit(): Promise<void> {
    return this.end('COMMIT', this.original.commitTransaction);
  }

  /** Rolls everything back, whatever is nested. */
  rollback(): Promise<void> {
    if (!this.begun || !this.runner.isTransactionActive) return this.guard.rollback();
    (this.runner as unknown as Depth).transactionDepth = 1;
    return this.end('ROLLBACK', this.original.rollbackTransaction);
  }

  private end(statement: 'COMMIT' | 'ROLLBACK', method: () => Promise<void>): Promise<void> {
    this.awaited = statement;
    return this.guard.hasSubscribers ? engineAtWork.run(this.runner, method) : method();
  }

  /**
   * Gives the connection back to the pool. The runner does not say so: TypeORM would answer a late statement with an error of
   * its own, before this one could say what is wrong with it.
   */
  async release(): Promise<void> {
    await this.original.release();
    Object.defineProperty(this.runner, 'isReleased', { value: false });
  }

  /** Ends streams that the handler has left open; nothing else could use the connection before. */
  endStreams(): void {
    for (const stream of this.streams) stream.destroy();
    this.streams.clear();
  }

  private readonly query = (sql: string, ...rest: unknown[]): Promise<unknown> => {
    if (sql === this.awaited) {
      this.awaited = undefined;
      return sql === 'COMMIT' ? this.guard.commit() : this.guard.rollback();
    }
    if (!this.begun) {
      if (sql === 'START TRANSACTION') return this.guard.begin();
      // The isolation level is part of the engine's own BEGIN.
      if (sql.startsWith('SET TRANSACTION')) return Promise.resolve();
      return this.call(() => this.original.query(sql, ...rest));
    }
    if (engineAtWork.getStore() === this.runner) return this.call(() => this.original.query(sql, ...rest));
    const refusal = this.refusalOf(sql);
    if (refusal) return Promise.reject(refusal);
    return this.guard.track(this.call(() => this.original.query(sql, ...rest)));
  };

  private readonly stream = (sql: string, ...rest: unknown[]): Promise<unknown> => {
    const refusal = this.refusalOf(sql);
    if (refusal) return Promise.reject(refusal);
    const opened = this.call(() => this.original.stream(sql, ...rest)) as Promise<{
      destroy(): void;
      once(event: 'close', listener: () => void): void;
      once(event: typeof errorMonitor, listener: (error: unknown) => void): void;
    }>;
    return this.guard.track(
      opened.then((stream) => {
        this.streams.add(stream);
        stream.once('close', () => this.streams.delete(stream));
        stream.once(errorMonitor, (error) => this.guard.streamFailed(error));
        return stream;
      }),
    );
  };

  private readonly connect = (): Promise<unknown> => {
    if (this.inside) return Promise.resolve(this.client);
    const refusal = this.guard.refusal();
    if (refusal) return Promise.reject(refusal);
    return Promise.resolve(
      guardClient(this.client, {
        refusal: (sql) => this.refusalOf(sql),
        track: (statement) => this.guard.track(statement),
        released: () => this.guard.problem('released'),
      }),
    );
  };

  /** Ends a nested transaction; the outermost one is not the handler's to end (R14). */
  private endNested(method: 'commitTransaction' | 'rollbackTransaction', problem: TransactionProblem): Promise<void> {
    return this.depth > 1 ? this.original[method]() : Promise.reject(this.guard.problem(problem));
  }

  private refusalOf(sql: string): Error | undefined {
    const control = transactionControl(sql);
    return this.guard.refusal() ?? (control && this.guard.problem(control));
  }

  /** TypeORM's methods take the connection before their first await. */
  private call(method: () => Promise<unknown>): Promise<unknown> {
    this.inside = true;
    try {
      return method();
    } finally {
      this.inside = false;
    }
  }
}
