import { downstream, isLive, openDeps, type ModelRun, type ModelStep, type RunPlan } from './model-state.js';
import type { Operation, OperationOf, Told } from './operations.js';
import { expectRefusal, Impossible } from './told.js';
import { WorkerModel } from './worker-model.js';

/**
 * What the engine has to do, in plain TypeScript: written from the rules (R9-R28) and the table of transitions. What operators do is here,
 * what workers do in the class below it.
 *
 * Where the rules leave a choice (which of several steps a claim takes, whose lease a sweep looks at first, whether a run is locked at the
 * moment) it follows what the engine has `told`, and throws `Impossible` when that is no possible choice.
 */
export class ReferenceModel extends WorkerModel {
  clone(): ReferenceModel {
    return Object.assign(new ReferenceModel(this.now), structuredClone({ ...this }));
  }

  /** `alone`: nothing else happened at the same time, so nothing was locked and nothing may be left undone. */
  perform(operation: Operation, told: readonly Told[], alone: boolean): void {
    if (told.some(({ event }) => event === 'broken')) throw new Impossible('something is broken');
    switch (operation.do) {
      case 'flush':
        return this.flush(operation, told, alone);
      case 'complete':
        return this.complete(operation, told);
      case 'settle':
        return this.settle(operation, told, alone);
      case 'heartbeat':
        return this.heartbeat(operation, told, alone);
      case 'sweep':
        return this.sweep(operation, told, alone);
      case 'deadlines':
        return this.deadlines(told, alone);
      case 'cancel':
        return this.cancel(operation.runId, told);
      case 'pause':
        return this.pause(operation.runId, told);
      case 'resume':
        return this.resume(operation.runId, told);
      case 'repair':
        return this.repair(operation.runId, told, alone);
      case 'retry':
        return this.retry(operation, told);
    }
  }

  /** R1, R9. */
  submit(id: string, plan: RunPlan): void {
    const startsAt = this.now + plan.delayMs;
    const run: ModelRun = { id, plan, state: 'new', deadlineAt: null, deadlineLeft: null, steps: {} };
    this.runs[id] = run;
    this.moveRun(run, 'running');
    if (plan.deadlineMs !== null) run.deadlineAt = startsAt + plan.deadlineMs;
    for (const node of plan.nodes) {
      const step: ModelStep = {
        runId: id,
        plan: node,
        state: 'new',
        attempt: 1,
        maxAttempts: node.maxAttempts,
        reclaims: 0,
        generation: 0,
        owner: null,
        leaseExpiry: null,
        startedAt: null,
        scheduledAt: startsAt,
        wakeAt: null,
        waitLeft: null,
        errorKind: null,
        contained: null,
      };
      run.steps[node.name] = step;
      if (node.after.length > 0) this.move(step, 'pending', 'submit');
      else this.begin(step, startsAt + node.waitMs);
    }
  }

  /** R24, R28. */
  private cancel(id: string, told: readonly Told[]): void {
    const run = this.run(id);
    if (expectRefusal(told, isLive(run) ? undefined : 'already_terminal')) return;
    for (const step of Object.values(run.steps)) this.cancelStep(run, step);
    this.moveRun(run, 'cancelled');
  }

  /** R26. */
  private pause(id: string, told: readonly Told[]): void {
    const run = this.run(id);
    if (expectRefusal(told, isLive(run) ? undefined : 'already_terminal') || run.state === 'paused') return;
    for (const step of Object.values(run.steps)) {
      if (step.state !== 'available' && !step.state.startsWith('waiting')) continue;
      step.waitLeft = step.wakeAt === null ? null : Math.max(0, step.wakeAt - this.now);
      step.wakeAt = null;
      this.move(step, 'paused');
    }
    run.deadlineLeft = run.deadlineAt === null ? null : Math.max(0, run.deadlineAt - this.now);
    this.moveRun(run, 'paused');
  }

  /** R26. */
  private resume(id: string, told: readonly Told[]): void {
    const run = this.run(id);
    if (expectRefusal(told, run.state === 'paused' ? undefined : 'not_paused')) return;
    this.moveRun(run, 'running');
    if (run.deadlineLeft !== null) run.deadlineAt = this.now + run.deadlineLeft;
    run.deadlineLeft = null;
    for (const step of Object.values(run.steps)) {
      if (step.state !== 'paused') continue;
      this.begin(step, step.waitLeft === null ? null : this.now + step.waitLeft);
      step.waitLeft = null;
    }
    this.discardTooLarge(
      this.promote(run).map((step) => ({ run, step })),
      told,
    );
  }

  /** R24: what is well is not touched. */
  private repair(id: string, told: readonly Told[], alone: boolean): void {
    if (!alone && told.some(({ event }) => event === 'busy')) return;
    if (expectRefusal(told, this.run(id).state === 'running' ? undefined : 'not_running')) return;
    if (told.length > 0) throw new Impossible('there was something to repair');
  }

  /** R11, R25, R27. */
  private retry({ runId, node, additional }: OperationOf<'retry'>, told: readonly Told[]): void {
    const run = this.run(runId);
    const steps = Object.values(run.steps);
    const target = node === null ? undefined : run.steps[node];
    if (node !== null && !target) return void expectRefusal(told, 'node_not_found');
    const wrong = run.state !== 'failed' || (target && (target.state !== 'discarded' || target.contained));
    if (expectRefusal(told, wrong ? 'not_retryable' : undefined)) return;

    // With one node what is discarded before it is reopened too: else it could never become ready.
    const discarded = steps.filter((step) => step.state === 'discarded');
    const reopened = new Set(
      discarded.filter((step) => !target || step === target || downstream(run, step).includes(target)),
    );
    const blocked = new Set(discarded.filter((step) => !reopened.has(step)).flatMap((step) => downstream(run, step)));
    for (const step of steps) if (step.state === 'cancelled' && !blocked.has(step)) reopened.add(step);

    this.moveRun(run, 'running');
    if (run.plan.deadlineMs !== null) run.deadlineAt = this.now + run.plan.deadlineMs;
    for (const step of reopened) this.reopen(run, step, additional);
    this.discardTooLarge(
      this.promote(run).map((step) => ({ run, step })),
      told,
    );
  }

  private reopen(run: ModelRun, step: ModelStep, additional: number): void {
    if (step.state === 'discarded') {
      step.attempt++;
      step.maxAttempts = Math.max(step.maxAttempts + additional, step.attempt);
      step.scheduledAt = Math.min(step.scheduledAt, this.now);
      const key = `${run.id}/${step.plan.name}`;
      this.charged[key] = (this.charged[key] ?? 0) + 1;
    }
    Object.assign(step, { reclaims: 0, errorKind: null, contained: null });
    const { type, waitMs } = step.plan;
    if (openDeps(run, step) > 0 || this.isTooLarge(run, step))
      this.move(step, 'pending', 'retry before its dependencies');
    else if (type === 'child') this.move(step, 'pending', 'child retry');
    else if (type === 'timer') this.begin(step, step.wakeAt ?? this.now + (step.waitLeft ?? waitMs));
    else this.begin(step, this.now + waitMs);
    step.waitLeft = null;
  }
}
