import { LeaseLostError, SnoozeError } from '../model/errors/index.js';
import type { CycloneEvent } from '../model/events.js';
import { describeFailure, type Failure } from '../model/failure.js';
import type { PayloadSealer } from '../model/payload-codec.js';
import { decodePayload } from '../model/payload.js';
import { startTimer } from '../model/timer.js';
import type { EngineRow } from '../store/engine-row.js';
import type { Settlement } from '../store/engine-store.js';
import type { Engine } from '../store/engine.js';
import type { Aftermath } from './aftermath.js';
import { CompletionTransaction, type TransactionTools } from './completion/completion-transaction.js';
import { StepContextImpl, type ContextTools } from './context.js';
import { Execution } from './execution.js';
import { outputOf, pendingOf } from './handler-result.js';
import type { RegisteredHandler } from './handler.js';
import type { InContext } from './in-context.js';
import { codecFailure, invoke, invokeOpened } from './invoke.js';
import type { LeaseBook } from './leases/lease-book.js';
import { failed, interrupted, completionRefusal, plainSettlement, released, snoozed } from './settlements.js';
import type { Slots } from './slots.js';
import type { ProblemLog, WorkerLogger } from './worker-logger.js';

/** What an executor works with. */
export interface ExecutorTools extends TransactionTools {
  readonly engine: Engine;
  readonly handlers: ReadonlyMap<string, RegisteredHandler>;
  readonly maxPayloadBytes: number;
  readonly book: LeaseBook;
  readonly slots: Slots;
  readonly aftermath: Aftermath;
  readonly problems: ProblemLog;
  readonly logger: WorkerLogger;
  readonly inContext: InContext;
  /** Gives an execution to the lane that tells the database. */
  hand(execution: Execution): void;
  /** A slot came free. */
  onSlotFree(): void;
}

/** Executes claimed steps: calls their handlers, and makes of what these return or throw what the database has to know. */
export class Executor implements ContextTools {
  readonly logger: WorkerLogger;
  readonly problems: ProblemLog;
  /** Handlers still at work for steps that are no longer theirs: they ignore their signal (R17). */
  private readonly strays = new Set<Execution>();
  private draining = false;
  /** Executions whose failure has been made storable at any price. */
  private readonly plain = new WeakSet<Execution>();

  constructor(private readonly tools: ExecutorTools) {
    this.logger = tools.logger;
    this.problems = tools.problems;
  }

  /** How many handlers ignore their signal. */
  get ignoring(): number {
    return this.strays.size;
  }

  /** Executes a step whose slot is taken. @param claimedAt on the monotonic clock, before the claim was sent */
  start(row: EngineRow, claimedAt: number): void {
    const { tools } = this;
    const handler = tools.handlers.get(row.kind);
    if (!handler) {
      this.problems.report(`Step ${row.runId}:${row.node} was claimed, but nothing here handles "${row.kind}"`);
      this.freeSlot(row.queue);
      return;
    }
    const execution = new Execution(row, handler, claimedAt);
    if (!tools.book.add(execution)) {
      this.freeSlot(row.queue);
      return;
    }
    if (row.timeoutMs !== null) {
      const timeoutMs = row.timeoutMs;
      execution.timer = startTimer(timeoutMs, () => this.timeOut(execution, timeoutMs), { unref: true });
    }
    const context = new StepContextImpl(execution, this);
    let result: unknown;
    try {
      const { payloads } = tools.engine.settings;
      if (payloads && row.input !== null) {
        const input = payloads.open(row.input, { runId: row.runId, node: row.node, part: 'input' });
        result = tools.inContext(invokeOpened, handler, input, context);
      } else {
        result = tools.inContext(invoke, handler, row.input === null ? null : decodePayload(row.input), context);
      }
    } catch (error) {
      this.failed(execution, error);
      return;
    }
    const pending = pendingOf(result, context);
    if (!pending) this.returned(execution, result);
    else {
      pending.then(
        (value) => this.returned(execution, value),
        (error: unknown) => this.failed(execution, error),
      );
    }
  }

  openTransaction(execution: Execution): CompletionTransaction {
    return new CompletionTransaction(execution, this.tools);
  }

  /** A renewal found the lease gone. Of an outcome that is on its way the database says itself what becomes. */
  gone(execution: Execution): void {
    if (execution.phase === 'running' || execution.phase === 'committing') this.lost(execution);
  }

  /** The lease is lost (R12): aborts the handler and rolls back. Its late result will be dropped. */
  lost(execution: Execution): void {
    if (execution.phase === 'over' || execution.tx?.commitSent) return;
    this.end(execution);
    this.part(execution, new LeaseLostError(execution.runId, execution.node));
    this.emit('lease_lost', execution);
  }

  /** A lane tells that the step has completed. */
  completed(execution: Execution): void {
    this.end(execution);
    if (this.tools.engine.events.active) this.emit('completed', execution);
  }

  /** A lane tells that the execution was settled in another way; the events are in the rows. */
  settled(execution: Execution): void {
    this.end(execution);
  }

  /** The database refuses the completion for good: that is a permanent failure of the step. */
  refuse(execution: Execution, error: unknown): void {
    const failure = describeFailure(completionRefusal(error), { permanent: true });
    this.settle(execution, this.settlementOf(execution, error, failure));
  }

  /**
   * The database refuses the settlement for good. That can only be for its texts, so it is sent once more with plain ones: left to the
   * expiry of its lease, the step would be executed again and again.
   */
  giveUp(execution: Execution, error: unknown): void {
    const { settlement } = execution;
    if (settlement && !this.plain.has(execution)) {
      this.plain.add(execution);
      this.settle(execution, plainSettlement(settlement, error));
      return;
    }
    this.problems.report(`The failure of step ${execution.key} cannot be stored; its lease will expire`, error);
    this.settled(execution);
  }

  /** Gives the step back, uncharged, whatever its handler is doing (R20). */
  async release(execution: Execution): Promise<void> {
    if (execution.phase !== 'running') return;
    execution.stopTimer();
    execution.phase = 'committing';
    await execution.tx?.abandon();
    if (!isCommitting(execution)) return;
    this.settle(execution, released(execution));
    this.part(execution, new LeaseLostError(execution.runId, execution.node));
  }

  /** From now on the signal of every handler is aborted, and a failure under an aborted signal is not charged (R20). */
  abortAll(reason: Error): void {
    this.draining = true;
    for (const execution of this.tools.book.values()) execution.abort(reason);
  }

  private returned(execution: Execution, value: unknown): void {
    execution.handlerAtWork = false;
    if (execution.phase !== 'running') {
      this.strays.delete(execution);
      return;
    }
    try {
      execution.output = outputOf(value, execution, this.tools.maxPayloadBytes);
    } catch (error) {
      this.failed(execution, error, true);
      return;
    }
    const { payloads } = this.tools.engine.settings;
    if (payloads && execution.output !== null) void this.seal(execution, execution.output, payloads);
    else this.succeed(execution);
  }

  /** Lets the codec encode the output (R38). What it refuses discards the step, as an output that cannot be stored does. */
  private async seal(execution: Execution, output: string, payloads: PayloadSealer): Promise<void> {
    const { runId, node } = execution;
    try {
      await execution.tx?.close(); // the handler has returned, whatever it left behind
      const sealed = await payloads.seal(output, { runId, node, part: 'output' });
      if (execution.phase !== 'running') return; // lost, timed out or released meanwhile
      execution.output = sealed;
    } catch (error) {
      this.failed(execution, codecFailure(error));
      return;
    }
    this.succeed(execution);
  }

  private succeed(execution: Execution): void {
    if (execution.tx) void this.commit(execution, execution.tx);
    else this.handOver(execution);
  }

  private failed(execution: Execution, error: unknown, permanent = false): void {
    execution.handlerAtWork = false;
    if (execution.phase !== 'running') {
      this.strays.delete(execution);
      return;
    }
    execution.output = null;
    if (execution.tx) void this.rollBack(execution, execution.tx, error, permanent);
    else this.settleFailure(execution, error, permanent);
  }

  private async commit(execution: Execution, tx: CompletionTransaction): Promise<void> {
    execution.phase = 'committing';
    const finish = await tx.finish();
    if (!isCommitting(execution)) return; // lost, timed out or released meanwhile
    switch (finish.outcome) {
      case 'none':
        this.handOver(execution);
        break;
      case 'committed':
        this.completed(execution);
        if (finish.rows) this.tools.aftermath.of(finish.rows);
        else this.tools.engine.notifier.wake({ queues: this.tools.slots.names }); // everybody may look
        break;
      case 'lost':
        execution.tx = undefined;
        this.lost(execution);
        break;
      case 'failed':
        execution.tx = undefined; // it is over: only the settlement can say now what becomes of the step
        if (finish.permanent) this.refuse(execution, finish.error);
        else this.settleFailure(execution, finish.error, false);
        break;
      case 'interrupted':
        execution.tx = undefined;
        this.interrupt(execution, finish.error);
        break;
      case 'unknown':
        this.end(execution);
    }
  }

  private async rollBack(
    execution: Execution,
    tx: CompletionTransaction,
    error: unknown,
    permanent: boolean,
  ): Promise<void> {
    execution.phase = 'committing';
    const interruption = await tx.rollback();
    if (!isCommitting(execution)) return;
    // Of the same kind each time, whatever became of the session: an output that is no JSON, and a snooze, which costs nothing either.
    if (interruption && !permanent && !SnoozeError.is(error)) this.interrupt(execution, interruption);
    else this.settleFailure(execution, error, permanent);
  }

  /** The database or the network failed, not the handler (R39). */
  private interrupt(execution: Execution, interruption: Error): void {
    this.problems.report(`Step ${execution.key} was interrupted and goes back, uncharged`, interruption);
    this.settle(execution, interrupted(execution, interruption));
  }

  private settleFailure(execution: Execution, error: unknown, permanent: boolean): void {
    const settlement =
      this.draining && execution.aborted && !permanent
        ? released(execution)
        : this.settlementOf(execution, error, describeFailure(error, { permanent }));
    this.settle(execution, settlement);
  }

  /** Measured by the database from the claim; here from a moment later (R17). */
  private timeOut(execution: Execution, timeoutMs: number): void {
    execution.timer = undefined;
    if (execution.phase === 'handed' || execution.phase === 'over' || execution.tx?.commitSent) return;
    const reason = new DOMException(`The execution took longer than its timeout of ${timeoutMs} ms.`, 'TimeoutError');
    const failure: Failure = { error: reason.message, errorKind: 'timeout', panicStack: null };
    const tx = execution.tx;
    this.settle(execution, { ...this.settlementOf(execution, reason, failure), outcome: 'timed_out' });
    this.part(execution, reason, tx);
  }

  private settlementOf(execution: Execution, error: unknown, failure: Failure): Settlement {
    if (failure.snoozeMs !== undefined) return snoozed(execution, failure.snoozeMs);
    return failed(execution, failure, failure.retryAfterMs ?? this.customDelay(execution, error, failure));
  }

  /** Of a backoff function; null lets the database compute the delay (C16). */
  private customDelay(execution: Execution, error: unknown, failure: Failure): number | null {
    const { customDelay } = execution.handler.options;
    if (!customDelay || execution.hasBackoff || failure.errorKind === 'permanent') return null;
    try {
      return customDelay(execution.attempt, error);
    } catch (problem) {
      this.problems.report(`The backoff function of ${execution.handler.where} failed; the default applies`, problem);
      return null;
    }
  }

  private settle(execution: Execution, settlement: Settlement): void {
    execution.settlement = settlement;
    execution.output = null;
    this.handOver(execution);
  }

  private handOver(execution: Execution): void {
    execution.stopTimer();
    execution.phase = 'handed';
    if (execution.holdsSlot) this.giveSlotBack(execution);
    this.tools.hand(execution);
  }

  /** Parts with a handler that is still at work for a step that is no longer its. */
  private part(execution: Execution, reason: unknown, tx = execution.tx): void {
    if (execution.handlerAtWork) this.strays.add(execution);
    execution.abort(reason);
    void tx?.abandon();
  }

  private end(execution: Execution): void {
    execution.stopTimer();
    execution.phase = 'over';
    this.tools.book.remove(execution);
    if (execution.holdsSlot) this.giveSlotBack(execution);
  }

  private giveSlotBack(execution: Execution): void {
    execution.holdsSlot = false;
    this.freeSlot(execution.queue);
  }

  private freeSlot(queue: string): void {
    this.tools.slots.free(queue);
    this.tools.onSlotFree();
  }

  private emit(type: 'completed' | 'lease_lost', execution: Execution): void {
    const { runId, node, kind, queue, attempt, generation } = execution;
    const event: CycloneEvent = {
      type,
      runId,
      node,
      kind,
      queue,
      attempt,
      generation,
      worker: this.tools.owner,
      at: new Date(),
    };
    this.tools.engine.events.emit(event);
  }
}

/** Asked after an await, when the phase may have changed. */
function isCommitting(execution: Execution): boolean {
  return execution.phase === 'committing';
}
