import { LEASE_MS, isOpen, leaseKey, type ModelRun, type ModelStep } from './model-state.js';
import { ModelMoves } from './model-moves.js';
import type { OperationOf, Told } from './operations.js';
import { expectSame, Impossible } from './told.js';

/** What workers do: flushes, completion transactions, settlements, heartbeats, sweeps and the scan for deadlines. */
export class WorkerModel extends ModelMoves {
  /** R10, R12, R13: settles all, then promotes, then claims. */
  protected flush({ owner, done, slots }: OperationOf<'flush'>, told: readonly Told[], alone: boolean): void {
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
  protected complete({ lease, rollback }: OperationOf<'complete'>, told: readonly Told[]): void {
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

  /** R11, R15, R17, R20, R39. */
  protected settle(
    { lease, outcome, permanent, delayMs, maxReclaims }: OperationOf<'settle'>,
    told: readonly Told[],
    alone: boolean,
  ): void {
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
    if (outcome === 'interrupted') return this.interrupt(run, step, delayMs, maxReclaims);
    const errorKind = permanent ? 'permanent' : outcome === 'failed' ? 'retryable' : 'timeout';
    this.failed(run, step, errorKind, delayMs);
  }

  /** R39: as a reclaim, with a delay. */
  private interrupt(run: ModelRun, step: ModelStep, delayMs: number | null, maxReclaims: number | null): void {
    if (maxReclaims !== null && step.reclaims >= maxReclaims)
      return this.giveUp(run, step, 'reclaim_limit', 'interruption limit');
    this.putBack(run, step, 'interruption', 'interrupted', this.now + (delayMs ?? 0));
    step.errorKind = null;
  }

  /** R10, R18: never past the timeout. What is locked keeps its lease until the next one. */
  protected heartbeat({ owner, leases }: OperationOf<'heartbeat'>, told: readonly Told[], alone: boolean): void {
    const toldOf = (event: string) => told.filter((row) => row.event === event);
    const skipped = toldOf('skipped').map(leaseKey);
    if (alone && skipped.length > 0) throw new Impossible('a row is locked although nobody is there');
    const listed = leases ?? toldOf('renewed').map((row) => ({ ...row, owner }));
    const held = listed.filter((lease) => this.held(lease));
    if (leases)
      expectSame(
        'gone leases',
        toldOf('gone').map(leaseKey),
        leases.filter((lease) => !held.includes(lease)).map(leaseKey),
      );
    const own = this.steps().filter(({ step }) => step.owner === owner);
    if (alone && !leases)
      expectSame(
        'renewed leases',
        held.map(leaseKey),
        own.map(({ run, step }) => `${run.id}/${step.plan.name}/${step.generation}`),
      );
    for (const lease of held)
      if (!skipped.includes(leaseKey(lease))) this.step(lease).leaseExpiry = this.leaseUntil(this.step(lease));
  }

  /** R17, R19. The order in which leases are looked at is the engine's. */
  protected sweep({ maxReclaims }: OperationOf<'sweep'>, told: readonly Told[], alone: boolean): void {
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
  protected deadlines(told: readonly Told[], alone: boolean): void {
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
}

type Rank = readonly [number, number, number];
const compareRanks = (a: Rank, b: Rank) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
