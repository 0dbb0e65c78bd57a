import type { EntityManager } from 'typeorm';
import { CompletionTransactionError, LeaseLostError, type TransactionProblem } from '../../model/errors/index.js';
import { LEASE_IS_LOST, TRANSACTION_IS_FOREIGN } from '../../store/completion-store.js';
import type { HeldSession } from '../../store/connections.js';
import { faultOf, isAnswer, isInfrastructure, isUnstorable } from '../../store/database-fault.js';
import type { EngineRow } from '../../store/engine-row.js';
import type { Engine } from '../../store/engine.js';
import { destroyClient, type RawClient } from '../../store/raw-client.js';
import { lossOf } from '../../store/session-loss.js';
import type { Session } from '../../store/session.js';
import type { Execution } from '../execution.js';
import { COMPLETION_PLANS, PlanFreshness } from '../lanes/plan-freshness.js';
import type { ProblemLog } from '../worker-logger.js';
import { decideCommit } from './commit-decision.js';
import type { ConnectionLine } from './connection-line.js';
import type { Place } from './connection-place.js';
import { GuardedRunner } from './guarded-runner.js';
import { describeInterruption } from './interruption.js';

const TRANSACTION_IS_ABORTED = '25P02';

/** What a worker's completion transactions share. */
export interface TransactionTools {
  readonly engine: Engine;
  readonly owner: string;
  readonly line: ConnectionLine;
  readonly problems: ProblemLog;
  /** Aborts when the worker is done with the database. */
  readonly stopped: AbortSignal;
}

/** What came of the completion and its commit. */
export type Finish =
  /** `rows` is undefined when the answer was lost: what the completion promoted is not known. */
  | { readonly outcome: 'committed'; readonly rows: readonly EngineRow[] | undefined }
  /** The lease was lost: everything was rolled back (R12). */
  | { readonly outcome: 'lost' }
  /** The attempt failed: everything was rolled back. `permanent`: the server refuses the output, and always will. */
  | { readonly outcome: 'failed'; readonly error: unknown; readonly permanent: boolean }
  /** The database or the network failed, not the handler: everything was rolled back (R39). */
  | { readonly outcome: 'interrupted'; readonly error: Error }
  /** The transaction was never opened. */
  | { readonly outcome: 'none' }
  /** Nobody can know any more: the worker has stopped, the expiry of the lease decides. */
  | { readonly outcome: 'unknown' };

/** The plans of pool connections grow old too (C1). */
const plansOf = new WeakMap<RawClient, PlanFreshness>();

/**
 * The transaction in which a step completes (R13): opened on first use, used by the handler, committed together with the step, or
 * rolled back. Nobody but the engine can end it (R14).
 */
export class CompletionTransaction {
  /** Whether the commit is on its way, so that only the database can say what becomes of the step. */
  commitSent = false;
  private state: 'usable' | 'closed' | 'abandoned' = 'usable';
  /** Of the connection; `committing` while subscribers and the engine have it. */
  private phase: 'none' | 'opening' | 'open' | 'committing' = 'none';
  private opening: Promise<EntityManager> | undefined;
  private place: Place | undefined;
  private runner: GuardedRunner | undefined;
  private client: RawClient | undefined;
  private xid = '';
  private committed: readonly EngineRow[] | undefined;
  private problem: CompletionTransactionError | undefined;
  private lastError: unknown;
  /** The first failure that it met which is not the handler's (R39). */
  private interruption: Error | undefined;
  private underWay = 0;
  private whenQuiet: (() => void)[] = [];

  constructor(
    private readonly execution: Execution,
    private readonly tools: TransactionTools,
  ) {}

  /**
   * The manager of the transaction; the first call opens it.
   * @throws CompletionTransactionError or LeaseLostError when it is too late for that
   */
  async open(): Promise<EntityManager> {
    const refusal = this.refusal();
    if (refusal) throw refusal;
    this.opening ??= this.begin().catch((error: unknown) => {
      this.opening = undefined; // the next call may try again
      throw error;
    });
    return this.opening;
  }

  /** Takes no more statements, awaits those under way, and commits them together with the step. Never rejects. */
  async finish(): Promise<Finish> {
    await this.close();
    const { runner, client } = this;
    if (this.state === 'abandoned') return { outcome: 'lost' };
    if (!runner || !client) return { outcome: 'none' };
    if (this.findLoss()) return this.fail(this.interruption);
    if (runner.depth !== 1) this.guardProblem('nested');
    if (this.problem) return this.fail(this.problem);
    this.phase = 'committing';
    try {
      await runner.commit();
    } catch (error) {
      if (!this.committed) return this.decide(error);
      this.tools.problems.report(`A subscriber failed after the commit of step ${this.execution.key}`, error);
    }
    await this.release(false);
    return { outcome: 'committed', rows: this.committed ?? [] };
  }

  /**
   * The handler has failed: takes no more statements, awaits those under way, and rolls back. Never rejects.
   * @returns what interrupted the transaction before that: then the failure is not the handler's, whatever it threw (R39)
   */
  async rollback(): Promise<Error | undefined> {
    await this.close();
    this.findLoss();
    const { interruption } = this;
    if (this.state !== 'abandoned') await this.undo();
    return interruption;
  }

  /** Gives up at once, whatever is under way: the lease is lost. Does nothing when the commit is on its way. Never rejects. */
  async abandon(): Promise<void> {
    if (this.commitSent || this.state === 'abandoned') return;
    this.state = 'abandoned';
    if (this.phase === 'opening') {
      // Its continuation finds out and cleans up.
      if (this.client) destroyClient(this.client);
      else void this.place?.release(false);
    } else if (this.phase === 'open' && this.underWay === 0) await this.undo();
    else await this.release(true);
    this.whenQuiet.splice(0).forEach((resolve) => resolve());
  }

  private async begin(): Promise<EntityManager> {
    const { engine, line } = this.tools;
    this.phase = 'opening';
    this.interruption = undefined;
    this.place = line.enter(this.execution);
    try {
      const held = await this.ofTheEngine('could not begin', this.place.granted);
      this.assertNotAbandoned();
      const { client } = (held as HeldSession).session;
      const session = engine.connections.within(client);
      const newPlans = arePlansOld(client);
      // It never takes a connection by itself: whatever it asks for goes to this one.
      const runner = engine.connections.dataSource.createQueryRunner('master');
      this.client = client;
      this.runner = new GuardedRunner(runner, client, {
        hasSubscribers: engine.connections.dataSource.subscribers.length > 0,
        begin: async () => {
          this.xid = await this.ofTheEngine(
            'could not begin',
            engine.completions.begin(session, this.execution, newPlans),
          );
        },
        commit: () => this.complete(session),
        rollback: () => engine.completions.rollback(session),
        problem: (problem) => this.guardProblem(problem),
        refusal: () => this.refusal(),
        track: (statement) => this.track(statement),
        streamFailed: (error) => this.noteError(error),
      });
      await this.runner.start();
      this.assertNotAbandoned();
      this.phase = 'open';
      return runner.manager;
    } catch (error) {
      await this.release(true);
      throw error;
    }
  }

  private async complete(session: Session): Promise<void> {
    if (this.state === 'abandoned') throw new LeaseLostError(this.execution.runId, this.execution.node);
    this.commitSent = true;
    const { committed, rows } = await this.tools.engine.completions.finish(session, this.tools.owner, this.execution);
    if (!committed) throw this.abortedError();
    this.committed = rows;
  }

  /** The commit did not succeed, or nobody knows: finds out which. */
  private async decide(error: unknown): Promise<Finish> {
    const { engine, problems, stopped } = this.tools;
    const { code } = error as { code?: unknown };
    if (!this.commitSent) return this.state === 'abandoned' ? { outcome: 'lost' } : this.fail(error);
    if (code === LEASE_IS_LOST) {
      await this.undo();
      return { outcome: 'lost' };
    }
    if (CompletionTransactionError.is(error)) return this.fail(error);
    if (code === TRANSACTION_IS_ABORTED) return this.fail(this.abortedError());
    if (code === TRANSACTION_IS_FOREIGN) {
      await this.undo();
      const status = await decideCommit(engine, this.xid, this.execution, false, problems, stopped);
      return this.fail(this.guardProblem(status === 'aborted' ? 'rolled_back' : 'committed'));
    }
    const fault = faultOf(error);
    // The output and deferred constraints are the handler's, the rest of the message is the engine's.
    if (fault === 'data') return this.fail(error, isUnstorable(error));
    this.interrupt('was not committed', error);
    if (fault !== 'session') return this.fail(error);
    await this.release(true);
    const status = await decideCommit(engine, this.xid, this.execution, true, problems, stopped);
    if (status === undefined) return { outcome: 'unknown' };
    return status === 'committed' ? { outcome: 'committed', rows: undefined } : this.failed(error);
  }

  private async fail(error: unknown, permanent = false): Promise<Finish> {
    await this.undo();
    return this.failed(error, permanent);
  }

  private failed(error: unknown, permanent = false): Finish {
    return this.interruption
      ? { outcome: 'interrupted', error: this.interruption }
      : { outcome: 'failed', error, permanent };
  }

  /** Whether the session is lost. It may have gone while the handler did something else, so that no statement has met it. */
  private findLoss(): boolean {
    const loss = this.client && lossOf(this.client);
    if (loss) this.interrupt('lost its connection', loss);
    return loss !== undefined;
  }

  /** The first interruption counts: what follows is its consequence. */
  private interrupt(how: string, error: unknown): void {
    this.interruption ??= describeInterruption(how, error);
  }

  private async ofTheEngine<T>(how: string, statement: Promise<T>): Promise<T> {
    try {
      return await statement;
    } catch (error) {
      this.interrupt(how, error);
      throw error;
    }
  }

  /** Rolls back; a connection on which that does not work, or that met a fault of its own, is cut, so that nobody inherits it. */
  private async undo(): Promise<void> {
    let broken = this.interruption !== undefined;
    try {
      await this.runner?.rollback();
    } catch (error) {
      broken = true;
      // A session that has ended has rolled back with that, and whoever takes a lease away ends its session (C3).
      if (isAnswer(error)) {
        this.tools.problems.report(`The transaction of step ${this.execution.key} could not be rolled back`, error);
      }
    }
    await this.release(broken);
  }

  private async release(broken: boolean): Promise<void> {
    const { runner, place } = this;
    this.runner = undefined;
    this.place = undefined;
    try {
      await runner?.release();
    } catch (error) {
      this.tools.problems.report('A query runner could not be released', error);
    }
    try {
      await place?.release(broken);
    } catch (error) {
      this.tools.problems.report('A connection could not be released', error);
    }
  }

  /** Takes no more statements and awaits those under way. Never rejects. */
  async close(): Promise<void> {
    if (this.state === 'usable') this.state = 'closed';
    await this.opening?.catch(() => undefined); // the handler has heard of it
    this.runner?.endStreams();
    while (this.underWay > 0 && !this.isAbandoned) await new Promise<void>((resolve) => this.whenQuiet.push(resolve));
  }

  private get isAbandoned(): boolean {
    return this.state === 'abandoned';
  }

  private refusal(): Error | undefined {
    if (this.state === 'usable') return undefined;
    return this.state === 'closed' ? new CompletionTransactionError('closed') : this.leaseLost();
  }

  private assertNotAbandoned(): void {
    if (this.isAbandoned) throw this.leaseLost();
  }

  private leaseLost(): Error {
    return new LeaseLostError(this.execution.runId, this.execution.node);
  }

  private abortedError(): Error {
    return new CompletionTransactionError('aborted', { cause: this.lastError });
  }

  /** Notes how the handler broke the transaction; the first way counts, even when the handler swallows the error (R14). */
  private guardProblem(problem: TransactionProblem): CompletionTransactionError {
    return (this.problem ??= new CompletionTransactionError(problem));
  }

  /** A statement of the handler failed. */
  private noteError(error: unknown): void {
    this.lastError = error;
    if (isInfrastructure(error))
      this.interrupt(isAnswer(error) ? 'was stopped by the database' : 'lost its connection', error);
  }

  private async track<T>(statement: Promise<T>): Promise<T> {
    this.underWay++;
    try {
      return await statement;
    } catch (error) {
      this.noteError(error);
      throw error;
    } finally {
      this.underWay--;
      if (this.underWay === 0) this.whenQuiet.splice(0).forEach((resolve) => resolve());
    }
  }
}

function arePlansOld(client: RawClient): boolean {
  let plans = plansOf.get(client);
  if (!plans) plansOf.set(client, (plans = new PlanFreshness(COMPLETION_PLANS)));
  return plans.isDue();
}
