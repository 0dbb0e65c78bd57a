import type { ErrorKind, RunState, StepState } from '#cyclone/model/states.js';
import {
  BACKOFF_MS,
  downstream,
  isLive,
  isOpen,
  LEASE_MS,
  leaseKey,
  openDeps,
  upstream,
  type Lease,
  type ModelAttempt,
  type ModelRun,
  type ModelStep,
  type RunPlan,
} from './model-state.js';
import type { Operation, Told } from './operations.js';
import { rowOf, type Cause } from './rows.js';

/** The engine cannot have answered this, or not have done what it answered. */
export class Impossible extends Error {}

type Of<D extends Operation['do']> = Extract<Operation, { do: D }>;

/**
 * What the engine has to do, in plain TypeScript: written from the rules (R10-R28) and the table of transitions.
 *
 * It keeps no counters: it recounts everything from edges and states. Where the rules leave a choice (which of several steps a claim
 * takes, whose lease a sweep looks at first, whether a run is locked at the moment) it follows what the engine has `told`, and throws
 * `Impossible` when that is no possible choice.
 */
export class ReferenceModel {
  runs: Record<string, ModelRun> = {};
  attempts: ModelAttempt[] = [];
  /** Every row of the table that was taken, as places in `COUNTED_ROWS`. */
  taken: number[] = [];
  /** The states that each run and step went through. */
  paths: Record<string, string[]> = {};
  /** How often an operator's retry charged an attempt to a step. */
  charged: Record<string, number> = {};

  constructor(public now: number) {}

  clone(): ReferenceModel {
    const copy = new ReferenceModel(this.now);
    return Object.assign(copy, structuredClone({ ...this }));
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

  /** R10, R12, R13: settles all, then promotes, then claims. */
  private flush({ owner, done, slots }: Of<'flush'>, told: readonly Told[], alone: boolean): void {
    const busy = new Set(told.filter(({ event }) => event === 'busy').map(leaseKey));
    if (alone && busy.size > 0) throw new Impossible('a run is busy although nobody is there');
    const settled = done.filter((lease) => !busy.has(leaseKey(lease)));
    const held = settled.filter((lease) => this.held(lease));
    expectSame(
      'lost leases',
      told.filter(({ event }) => event === 'lease_lost').map(leaseKey),
      settled.filter((lease) => !held.includes(lease)).map(leaseKey),
    );
    for (const lease of held) this.finish(this.step(lease));

    const claims = told.filter(({ event }) => event === 'claimed');
    const touched = [...new Set(held.map(({ runId }) => this.run(runId)))];
    const tooLarge = touched.flatMap((run) => this.promote(run).map((step) => ({ run, step })));
    if (alone && tooLarge.length === 0) this.expectFairClaims(claims, slots);
    if (claims.length > slots) throw new Impossible('more was claimed than there are slots');
    // A dependent may be claimed by the statement that makes it available, before a discard beside it cancels it.
    const late = claims.filter((claim) => !this.claim(owner, claim, touched));
    for (const run of touched) this.endWhenDone(run);
    this.discardTooLarge(tooLarge, told);
    for (const claim of late)
      if (!this.claim(owner, claim)) throw new Impossible(`${leaseKey(claim)} was not to claim`);
  }

  /** R12, R13. */
  private complete({ lease, rollback }: Of<'complete'>, told: readonly Told[]): void {
    const lost = !this.held(lease);
    if (lost !== told.some(({ event }) => event === 'lease_lost'))
      throw new Impossible(`the lease is ${lost ? '' : 'not '}lost`);
    if (lost || rollback) return;
    const run = this.run(lease.runId);
    this.finish(this.step(lease));
    const tooLarge = this.promote(run).map((step) => ({ run, step }));
    this.endWhenDone(run);
    this.discardTooLarge(tooLarge, told);
  }

  /** R11, R15, R17, R20. */
  private settle({ lease, outcome, permanent, delayMs }: Of<'settle'>, told: readonly Told[], alone: boolean): void {
    if (!alone && told.some(({ event }) => event === 'busy')) return;
    const lost = !this.held(lease);
    expectSame(
      'lost leases',
      told.filter(({ event }) => event === 'lease_lost').map(leaseKey),
      lost ? [leaseKey(lease)] : [],
    );
    if (lost) return;
    const run = this.run(lease.runId);
    const step = this.step(lease);
    if (outcome === 'snoozed') return this.putBack(run, step, 'snooze', outcome, this.now + (delayMs ?? 0));
    if (outcome === 'released') return this.putBack(run, step, 'release', outcome, step.scheduledAt);
    const errorKind = permanent ? 'permanent' : outcome === 'failed' ? 'retryable' : 'timeout';
    this.failed(run, step, errorKind, delayMs);
  }

  /** R10, R18: never past the timeout. */
  private heartbeat({ owner, leases }: Of<'heartbeat'>, told: readonly Told[], alone: boolean): void {
    const gone = told.filter(({ event }) => event === 'gone').map(leaseKey);
    const skipped = told.filter(({ event }) => event === 'skipped').map(leaseKey);
    if (alone && skipped.length > 0) throw new Impossible('a row is locked although nobody is there');
    const all = this.steps().filter(({ step }) => step.state === 'running' && step.owner === owner);
    const mine = leases
      ? leases.filter((lease) => this.held(lease)).map((lease) => this.step(lease))
      : all.map(({ step }) => step);
    if (leases) expectSame('gone leases', gone, leases.filter((lease) => !this.held(lease)).map(leaseKey));
    for (const { run, step } of all) {
      const renewed = mine.includes(step) && !skipped.includes(`${run.id}/${step.plan.name}/${step.generation}`);
      if (renewed) step.leaseExpiry = this.leaseUntil(step);
    }
  }

  /** R17, R19. The order in which leases are looked at is the engine's. */
  private sweep({ maxReclaims }: Of<'sweep'>, told: readonly Told[], alone: boolean): void {
    if (alone && told.some(({ event }) => event === 'stuck'))
      throw new Impossible('a run is locked although nobody is there');
    const handled = told.filter(({ event }) => ['reclaimed', 'timed_out', 'discarded'].includes(event));
    for (const key of new Set(handled.map(({ runId, node }) => `${runId} ${node}`))) {
      const [runId = '', node = ''] = key.split(' ');
      const run = this.run(runId);
      const step = run.steps[node]!;
      if (!this.hasExpired(step)) throw new Impossible(`the lease of ${key} has not expired`);
      const { timeoutMs } = step.plan;
      if (timeoutMs !== null && step.startedAt! + timeoutMs <= this.now) this.failed(run, step, 'timeout', null);
      else if (maxReclaims !== null && step.reclaims >= maxReclaims)
        this.giveUp(run, step, 'reclaim_limit', 'reclaim limit');
      else this.putBack(run, step, 'reclaim', 'reclaimed', step.scheduledAt);
    }
    const left = this.steps().filter(({ step }) => this.hasExpired(step));
    if (alone && left.length > 0) throw new Impossible('the sweep has left an expired lease');
  }

  /** R27. */
  private deadlines(told: readonly Told[], alone: boolean): void {
    const due = Object.values(this.runs).filter((run) => run.deadlineAt !== null && run.deadlineAt <= this.now);
    const ended = told.filter(({ event }) => event === 'run_failed').map(({ runId }) => runId);
    if (alone)
      expectSame(
        'runs past their deadline',
        ended,
        due.map(({ id }) => id),
      );
    for (const id of ended) {
      const run = this.run(id);
      if (!due.includes(run)) throw new Impossible(`run ${id} has time left`);
      for (const step of Object.values(run.steps).filter(isOpen)) {
        if (step.state === 'running') this.log(run, step, 'discarded');
        this.move(step, 'discarded', 'deadline');
        Object.assign(step, { errorKind: 'deadline', contained: false });
      }
      this.moveRun(run, 'failed');
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
  private retry({ runId, node, additional }: Of<'retry'>, told: readonly Told[]): void {
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

  /** A failed or timed-out execution: charged, and back with a backoff or discarded (R11, R15). */
  private failed(run: ModelRun, step: ModelStep, errorKind: ErrorKind, delayMs: number | null): void {
    if (errorKind === 'permanent' || step.attempt >= step.maxAttempts)
      return this.giveUp(run, step, errorKind, 'gave up');
    const at = this.now + (delayMs ?? BACKOFF_MS * 2 ** (step.attempt - 1));
    const timedOut = errorKind === 'timeout';
    this.putBack(run, step, timedOut ? 'timeout' : 'retryable error', timedOut ? 'timed_out' : 'retried', at);
    step.attempt++;
    step.errorKind = errorKind;
  }

  private putBack(run: ModelRun, step: ModelStep, cause: Cause, outcome: string, at: number): void {
    this.log(run, step, outcome);
    if (cause === 'reclaim') step.reclaims++;
    step.scheduledAt = at;
    this.move(step, run.state === 'paused' ? 'paused' : 'available', cause);
  }

  private giveUp(run: ModelRun, step: ModelStep, errorKind: ErrorKind, cause: Cause): void {
    this.log(run, step, 'discarded');
    this.discard(run, step, errorKind, cause);
  }

  /** R23. */
  private discard(run: ModelRun, step: ModelStep, errorKind: ErrorKind, cause: Cause): void {
    const behind = downstream(run, step);
    step.contained = behind.length > 0 && behind.every(({ plan }) => plan.onDepFailure === 'cancel_branch');
    step.errorKind = errorKind;
    this.move(step, 'discarded', cause);
    for (const other of step.contained ? behind : Object.values(run.steps)) this.cancelStep(run, other);
    if (step.contained) this.endWhenDone(run);
    else this.moveRun(run, 'failed');
  }

  private cancelStep(run: ModelRun, step: ModelStep): void {
    if (!isOpen(step)) return;
    if (step.state === 'running') this.log(run, step, 'cancelled');
    this.move(step, 'cancelled');
  }

  private finish(step: ModelStep): void {
    step.errorKind = null;
    this.move(step, 'completed');
  }

  /** Nothing leaves pending in a paused run (R26). Answers the steps whose input is too large: they stay where they are. */
  private promote(run: ModelRun): ModelStep[] {
    if (run.state !== 'running') return [];
    const ready = Object.values(run.steps).filter((step) => step.state === 'pending' && openDeps(run, step) === 0);
    const tooLarge = ready.filter((step) => this.isTooLarge(run, step));
    for (const step of ready) if (!tooLarge.includes(step)) this.begin(step, this.now + step.plan.waitMs);
    return tooLarge;
  }

  /** In the order of the engine; a discard may have cancelled the next one. */
  private discardTooLarge(found: { run: ModelRun; step: ModelStep }[], told: readonly Told[]): void {
    const places = new Map(
      told.filter(({ event }) => event === 'discarded').map((row, i) => [`${row.runId}/${row.node}`, i]),
    );
    const placeOf = ({ run, step }: (typeof found)[number]) => places.get(`${run.id}/${step.plan.name}`) ?? Infinity;
    for (const { run, step } of found.toSorted((a, b) => placeOf(a) - placeOf(b) || 0)) {
      if (isOpen(step)) this.discard(run, step, 'permanent', 'too large');
    }
  }

  private isTooLarge(run: ModelRun, step: ModelStep): boolean {
    return step.plan.gathers && upstream(run, step).some(({ plan }) => plan.large);
  }

  private endWhenDone(run: ModelRun): void {
    const steps = Object.values(run.steps);
    if (!isLive(run) || steps.some(isOpen)) return;
    this.moveRun(run, steps.some((step) => step.state === 'discarded' && !step.contained) ? 'failed' : 'completed');
  }

  /** Puts a step where its type waits for somebody: a worker, or the end of its wait. */
  private begin(step: ModelStep, wakeAt: number | null): void {
    const { type } = step.plan;
    step.wakeAt = wakeAt;
    this.move(step, type === 'step' || type === 'action' ? 'available' : `waiting_${type}`);
  }

  private claim(owner: string, told: Told, among?: readonly ModelRun[]): boolean {
    const run = this.run(told.runId);
    const step = run.steps[told.node]!;
    if (among && !among.includes(run)) return false;
    if (!this.isClaimable(step)) return false;
    this.move(step, 'running');
    step.generation++;
    if (step.generation !== told.generation) throw new Impossible(`${leaseKey(told)} has the wrong generation`);
    Object.assign(step, { owner, startedAt: this.now });
    step.leaseExpiry = this.leaseUntil(step);
    return true;
  }

  /** R10: by priority, then by scheduled_at, then by run id; and no slot stays free. */
  private expectFairClaims(claims: readonly Told[], slots: number): void {
    const open = this.steps().filter(({ step }) => this.isClaimable(step));
    if (claims.length !== Math.min(slots, open.length))
      throw new Impossible(`${claims.length} of ${open.length} steps were claimed`);
    const taken = new Set(claims.map(({ runId, node }) => `${runId}/${node}`));
    const rank = ({ run, step }: (typeof open)[number]) =>
      [step.plan.priority, step.scheduledAt, Number(run.id)] as const;
    const isTaken = ({ run, step }: (typeof open)[number]) => taken.has(`${run.id}/${step.plan.name}`);
    const worst = open.filter(isTaken).map(rank).toSorted(compareRanks).at(-1);
    const best = open
      .filter((one) => !isTaken(one))
      .map(rank)
      .toSorted(compareRanks)[0];
    if (worst && best && compareRanks(best, worst) < 0) throw new Impossible('a claim passed over what was before it');
  }

  private isClaimable(step: ModelStep): boolean {
    return step.state === 'available' && step.scheduledAt <= this.now;
  }

  private hasExpired(step: ModelStep): boolean {
    return step.state === 'running' && step.leaseExpiry! < this.now;
  }

  private leaseUntil(step: ModelStep): number {
    return Math.min(this.now + LEASE_MS, step.startedAt! + (step.plan.timeoutMs ?? Infinity));
  }

  private held({ runId, node, generation, owner }: Lease): boolean {
    const step = this.run(runId).steps[node]!;
    return step.state === 'running' && step.owner === owner && step.generation === generation;
  }

  private log(run: ModelRun, step: ModelStep, outcome: string): void {
    const { generation, attempt } = step;
    this.attempts.push({ runId: run.id, node: step.plan.name, generation, attempt, outcome });
  }

  private move(step: ModelStep, to: StepState, cause?: Cause): void {
    this.taken.push(rowOf('step', step.state, to, cause));
    (this.paths[`step ${step.runId}/${step.plan.name}`] ??= []).push(to);
    step.state = to;
    step.owner = null;
    step.leaseExpiry = null;
  }

  private moveRun(run: ModelRun, to: RunState): void {
    this.taken.push(rowOf('run', run.state, to));
    (this.paths[`run ${run.id}`] ??= []).push(to);
    run.state = to;
    if (to !== 'running') run.deadlineAt = null;
  }

  private step({ runId, node }: Lease): ModelStep {
    return this.run(runId).steps[node]!;
  }

  private steps(): { run: ModelRun; step: ModelStep }[] {
    return Object.values(this.runs).flatMap((run) => Object.values(run.steps).map((step) => ({ run, step })));
  }

  private run(id: string): ModelRun {
    const run = this.runs[id];
    if (!run) throw new Impossible(`there is no run ${id}`);
    return run;
  }
}

type Rank = readonly [number, number, number];
const compareRanks = (a: Rank, b: Rank) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2];

function expectSame(what: string, told: readonly string[], expected: readonly string[]): void {
  const [a, b] = [told.toSorted().join(), expected.toSorted().join()];
  if (a !== b) throw new Impossible(`${what}: told [${a}], expected [${b}]`);
}

/** Whether the operation was refused; throws unless it was refused for this reason, or not when there is none. */
function expectRefusal(told: readonly Told[], reason: string | undefined): boolean {
  const refusal = told.find(({ event }) => event === 'refused')?.reason;
  if (refusal !== reason) throw new Impossible(`refused as ${refusal}, expected ${reason}`);
  return refusal !== undefined;
}
