import type { EntityManager } from 'typeorm';
import { StepContext, type StepLogger } from '../graph/step-context.js';
import type { Duration } from '../model/duration.js';
import { CompletionTransactionError, LeaseLostError, SnoozeError } from '../model/errors/index.js';
import type { CompletionTransaction } from './completion/completion-transaction.js';
import type { Execution } from './execution.js';
import { checkProgress, mergeProgress } from '../model/progress.js';
import { createSafeController } from './safe-signal.js';
import { stepLogger, type ProblemLog, type WorkerLogger } from './worker-logger.js';

/** What all contexts of a worker share. */
export interface ContextTools {
  readonly logger: WorkerLogger;
  readonly problems: ProblemLog;
  openTransaction(execution: Execution): CompletionTransaction;
}

/** The context of one execution. Whatever costs something is made when it is asked for. */
export class StepContextImpl extends StepContext {
  private stepLogger: StepLogger | undefined;

  constructor(
    private readonly execution: Execution,
    private readonly tools: ContextTools,
  ) {
    super();
  }

  override get runId(): string {
    return this.execution.runId;
  }

  override get node(): string {
    return this.execution.node;
  }

  override get kind(): string {
    return this.execution.kind;
  }

  override get attempt(): number {
    return this.execution.attempt;
  }

  override get idempotencyKey(): string {
    return this.execution.key;
  }

  override get signal(): AbortSignal {
    const { execution } = this;
    if (!execution.controller) {
      execution.controller = createSafeController((error) =>
        this.tools.problems.report(`A listener of ctx.signal failed in ${execution.handler.where}`, error),
      );
      if (execution.aborted) execution.controller.abort(execution.abortReason);
    }
    return execution.controller.signal;
  }

  override get logger(): StepLogger {
    return (this.stepLogger ??= stepLogger(this.tools.logger, this.execution.runId, this.execution.node));
  }

  /**
   * @throws LeaseLostError when the step is no longer this worker's
   * @throws CompletionTransactionError when the handler has returned (R13)
   */
  override async completionTx(): Promise<EntityManager> {
    const { execution } = this;
    this.assertUsable();
    execution.tx ??= this.tools.openTransaction(execution);
    return execution.tx.open();
  }

  override snooze(delay: Duration): never {
    this.assertUsable();
    throw new SnoozeError(delay);
  }

  override progress(fraction: number, note?: string): void {
    const { execution } = this;
    // Nobody may be left to hear an error: the execution is over.
    if (execution.phase !== 'running' || execution.aborted || !execution.handlerAtWork) return;
    execution.progress = mergeProgress(execution.progress, checkProgress(fraction, note));
  }

  private assertUsable(): void {
    const { execution } = this;
    if (execution.phase === 'running' && execution.handlerAtWork) return;
    if (execution.aborted) throw new LeaseLostError(execution.runId, execution.node);
    throw new CompletionTransactionError('closed');
  }
}
