import type { ErrorKind, RunState, StepState } from '#cyclone/model/states.js';
import {
  BACKOFF_MS,
  downstream,
  isLive,
  isOpen,
  openDeps,
  upstream,
  type Lease,
  type ModelAttempt,
  type ModelRun,
  type ModelStep,
} from './model-state.js';
import type { Told } from './operations.js';
import { rowOf, type Cause } from './rows.js';
import { Impossible } from './told.js';

/** The model's tables, and what several operations do to them. It keeps no counters: it recounts everything from edges and states. */
export class ModelMoves {
  runs: Record<string, ModelRun> = {};
  attempts: ModelAttempt[] = [];
  /** Every row of the table that was taken, as places in `COUNTED_ROWS`. */
  taken: number[] = [];
  /** The states that each run and step went through. */
  paths: Record<string, string[]> = {};
  /** How often an operator's retry charged an attempt to a step. */
  charged: Record<string, number> = {};

  constructor(public now: number) {}

  /** A failed or timed-out execution: charged, and back with a backoff or discarded (R11, R15). */
  protected failed(run: ModelRun, step: ModelStep, errorKind: ErrorKind, delayMs: number | null): void {
    if (errorKind === 'permanent' || step.attempt >= step.maxAttempts)
      return this.giveUp(run, step, errorKind, 'gave up');
    const at = this.now + (delayMs ?? BACKOFF_MS * 2 ** (step.attempt - 1));
    const timedOut = errorKind === 'timeout';
    this.putBack(run, step, timedOut ? 'timeout' : 'retryable error', timedOut ? 'timed_out' : 'retried', at);
    step.attempt++;
    step.errorKind = errorKind;
  }

  protected putBack(run: ModelRun, step: ModelStep, cause: Cause, outcome: string, at: number): void {
    this.log(run, step, outcome);
    if (cause === 'reclaim' || cause === 'interruption') step.reclaims++;
    step.scheduledAt = at;
    this.move(step, run.state === 'paused' ? 'paused' : 'available', cause);
  }

  protected giveUp(run: ModelRun, step: ModelStep, errorKind: ErrorKind, cause: Cause): void {
    this.log(run, step, 'discarded');
    this.discard(run, step, errorKind, cause);
  }

  /** R23. */
  protected discard(run: ModelRun, step: ModelStep, errorKind: ErrorKind, cause: Cause): void {
    const behind = downstream(run, step);
    step.contained = behind.length > 0 && behind.every(({ plan }) => plan.onDepFailure === 'cancel_branch');
    step.errorKind = errorKind;
    this.move(step, 'discarded', cause);
    for (const other of step.contained ? behind : Object.values(run.steps)) this.cancelStep(run, other);
    if (step.contained) this.endWhenDone(run);
    else this.moveRun(run, 'failed');
  }

  protected cancelStep(run: ModelRun, step: ModelStep): void {
    if (!isOpen(step)) return;
    if (step.state === 'running') this.log(run, step, 'cancelled');
    this.move(step, 'cancelled');
  }

  protected finish(step: ModelStep): void {
    step.errorKind = null;
    this.move(step, 'completed');
  }

  /** Nothing leaves pending in a paused run (R26). Answers the steps whose input is too large: they stay where they are. */
  protected promote(run: ModelRun): ModelStep[] {
    if (run.state !== 'running') return [];
    const ready = Object.values(run.steps).filter((step) => step.state === 'pending' && openDeps(run, step) === 0);
    const tooLarge = ready.filter((step) => this.isTooLarge(run, step));
    for (const step of ready) if (!tooLarge.includes(step)) this.begin(step, this.now + step.plan.waitMs);
    return tooLarge;
  }

  /** In the order of the engine; a discard may have cancelled the next one. */
  protected discardTooLarge(found: { run: ModelRun; step: ModelStep }[], told: readonly Told[]): void {
    const places = new Map(
      told.filter(({ event }) => event === 'discarded').map((row, i) => [`${row.runId}/${row.node}`, i]),
    );
    const placeOf = ({ run, step }: (typeof found)[number]) => places.get(`${run.id}/${step.plan.name}`) ?? Infinity;
    for (const { run, step } of found.toSorted((a, b) => placeOf(a) - placeOf(b) || 0)) {
      if (isOpen(step)) this.discard(run, step, 'permanent', 'too large');
    }
  }

  protected isTooLarge(run: ModelRun, step: ModelStep): boolean {
    return step.plan.gathers && upstream(run, step).some(({ plan }) => plan.large);
  }

  protected endWhenDone(run: ModelRun): void {
    const steps = Object.values(run.steps);
    if (!isLive(run) || steps.some(isOpen)) return;
    this.moveRun(run, steps.some((step) => step.state === 'discarded' && !step.contained) ? 'failed' : 'completed');
  }

  /** Puts a step where its type waits for somebody: a worker, or the end of its wait. */
  protected begin(step: ModelStep, wakeAt: number | null): void {
    const { type } = step.plan;
    step.wakeAt = wakeAt;
    this.move(step, type === 'step' || type === 'action' ? 'available' : `waiting_${type}`);
  }

  protected held({ runId, node, generation, owner }: Lease): boolean {
    const step = this.run(runId).steps[node]!;
    return step.state === 'running' && step.owner === owner && step.generation === generation;
  }

  protected log(run: ModelRun, step: ModelStep, outcome: string): void {
    const { generation, attempt } = step;
    this.attempts.push({ runId: run.id, node: step.plan.name, generation, attempt, outcome });
  }

  protected move(step: ModelStep, to: StepState, cause?: Cause): void {
    this.taken.push(rowOf('step', step.state, to, cause));
    (this.paths[`step ${step.runId}/${step.plan.name}`] ??= []).push(to);
    step.state = to;
    step.owner = null;
    step.leaseExpiry = null;
  }

  protected moveRun(run: ModelRun, to: RunState): void {
    this.taken.push(rowOf('run', run.state, to));
    (this.paths[`run ${run.id}`] ??= []).push(to);
    run.state = to;
    if (to !== 'running') run.deadlineAt = null;
  }

  protected step({ runId, node }: Lease): ModelStep {
    return this.run(runId).steps[node]!;
  }

  protected steps(): { run: ModelRun; step: ModelStep }[] {
    return Object.values(this.runs).flatMap((run) => Object.values(run.steps).map((step) => ({ run, step })));
  }

  protected run(id: string): ModelRun {
    const run = this.runs[id];
    if (!run) throw new Impossible(`there is no run ${id}`);
    return run;
  }
}
