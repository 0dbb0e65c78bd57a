import type { EngineSession } from '../support/engine-sql.js';
import { accountsOf, attemptLinesOf, differences, linesOf, pathLinesOf } from './comparison.js';
import { isLive, LEASE_MS, type Lease, type RunPlan } from './model-state.js';
import { describeOperation, type Operation, type Told } from './operations.js';
import type { ReferenceModel } from './reference-model.js';
import type { RowCounts } from './rows.js';
import { wrongEvents } from './told-events.js';
import { Impossible } from './told.js';
import type { World } from './world.js';

/** One sequence of operations, done to a database and to the model, which have to agree after each of them. */
export class Play {
  /** Every lease that was ever given out: the stale ones are tried too. */
  readonly leases: Lease[] = [];
  /** What was done, for the report of a failure. */
  private readonly story: string[] = [];

  constructor(
    readonly world: World,
    public model: ReferenceModel,
    private readonly counts: RowCounts,
  ) {}

  async start(plans: readonly RunPlan[]): Promise<void> {
    await this.world.forget();
    await this.world.setClock(this.model.now);
    for (const plan of plans) await this.submit(plan);
  }

  async submit(plan: RunPlan): Promise<void> {
    this.model.submit(await this.world.submit(plan), plan);
    this.story.push(`submit ${JSON.stringify(plan)}`);
    await this.compare();
  }

  async passTime(ms: number): Promise<void> {
    this.model.now += ms;
    this.story.push(`${ms} ms pass`);
    await this.world.setClock(this.model.now);
  }

  /** One operation by itself. */
  async perform(operation: Operation, session: EngineSession = this.world.main): Promise<Told[]> {
    this.story.push(describeOperation(operation));
    const told = await this.world.perform(session, operation);
    this.remember(operation, told);
    const before = new Map(Object.entries(this.model.paths).map(([key, states]) => [key, states.length]));
    try {
      this.model.perform(operation, told, true);
    } catch (error) {
      if (error instanceof Impossible) this.fail(error.message);
      throw error;
    }
    await this.compare();
    const isUndone = operation.do === 'complete' && operation.rollback;
    const paths = Object.entries(this.model.paths).flatMap(([key, states]): [string, string[]][] => {
      const known = before.get(key) ?? 0;
      return states.length > known ? [[key, ['new', ...states].slice(known)]] : [];
    });
    const wrong = isUndone ? [] : wrongEvents(new Map(paths), told);
    if (wrong.length > 0) this.fail(wrong.join('\n'));
    return told;
  }

  /** Bulk retry of dead letters (R24): retryAll of each failed run that has one of this reason. */
  async retryExhausted(reason: string): Promise<void> {
    const kinds = reason === 'retryable' ? ['retryable', 'timeout'] : [reason];
    const hasDead = (run: ReferenceModel['runs'][string]) =>
      Object.values(run.steps).some((step) => step.state === 'discarded' && kinds.includes(step.errorKind ?? ''));
    const expected = Object.values(this.model.runs).filter((run) => run.state === 'failed' && hasDead(run));
    const found = await this.world.exhausted(reason);
    const wrong = differences(
      found,
      expected.map(({ id }) => id),
    );
    if (wrong.length > 0) this.fail(`dead letters of ${reason}: ${wrong.join(', ')}`);
    for (const runId of found) await this.perform({ do: 'retry', runId, node: null, additional: 1 });
  }

  /**
   * Several operations at once, each on a connection of its own. The tables and the answers have to be what some order of them gives:
   * which one is tried out on the model.
   */
  async performAtOnce(operations: readonly Operation[]): Promise<void> {
    this.story.push(operations.map(describeOperation).join('\n    with '));
    const sessions = this.world.sessions;
    const answers = await Promise.all(operations.map((operation, i) => this.world.perform(sessions[i]!, operation)));
    operations.forEach((operation, i) => this.remember(operation, answers[i]!));
    const real = [...(await this.world.read()), ...(await this.world.paths())];
    this.counts.rounds.all++;
    if (answers.flat().some(({ event }) => BLOCKED.has(event))) this.counts.rounds.locked++;
    const reasons: string[] = [];
    for (const order of ordersOf(operations.map((_, i) => i))) {
      const model = this.model.clone();
      try {
        for (const i of order) model.perform(operations[i]!, answers[i]!, false);
      } catch (error) {
        if (!(error instanceof Impossible)) throw error;
        reasons.push(`in the order ${order.join()}: ${error.message}`);
        continue;
      }
      const wrong = differences(real, [...linesOf(model), ...pathLinesOf(model)]);
      if (wrong.length === 0) {
        this.model = model;
        if (reasons.length > 0) this.counts.rounds.reordered++;
        return this.compare();
      }
      reasons.push(`in the order ${order.join()}:\n  ${wrong.join('\n  ')}`);
    }
    this.fail(`no order of the operations gives this:\n${reasons.join('\n')}\ntold ${JSON.stringify(answers)}`);
  }

  /**
   * Lets everything that is left run to its end, with what only helps: resume, time, a sweep, claims and completions. Then nothing may
   * be left but waits that nobody ends, and these run into the deadline or are cancelled.
   */
  async settle(): Promise<void> {
    const live = () => Object.values(this.model.runs).filter(isLive);
    for (const run of live()) if (run.state === 'paused') await this.perform({ do: 'resume', runId: run.id });
    await this.passTime(LEASE_MS + 1);
    await this.perform({ do: 'sweep', maxReclaims: null });
    const latest = Object.values(this.model.runs).flatMap((run) =>
      Object.values(run.steps).map((step) => step.scheduledAt),
    );
    await this.passTime(Math.max(0, Math.max(...latest) - this.model.now));
    for (let done: Lease[] = []; ;) {
      const told = await this.perform({ do: 'flush', owner: 'w0', done, slots: 100 });
      done = told.filter(({ event }) => event === 'claimed').map((row) => leaseOf('w0', row));
      if (done.length === 0) break;
    }
    for (const run of live()) {
      const steps = Object.values(run.steps);
      if (!steps.some(({ state }) => state.startsWith('waiting'))) this.fail(`run ${run.id} is stranded`);
      if (steps.some(({ state }) => state === 'running')) this.fail(`run ${run.id} runs for ever`);
    }
    const deadlines = live().map((run) => run.deadlineAt ?? 0);
    await this.passTime(Math.max(0, Math.max(0, ...deadlines) - this.model.now));
    await this.perform({ do: 'deadlines' });
    for (const run of live()) await this.perform({ do: 'cancel', runId: run.id });
    await this.check();
  }

  fail(message: string): never {
    throw new Error(`${message}\n\nWhat was done:\n${this.story.map((line, i) => `${i + 1}. ${line}`).join('\n')}`);
  }

  /** Whatever the model says, this has to be true at every moment. */
  private async check(): Promise<void> {
    const history = differences(await this.world.attempts(), attemptLinesOf(this.model));
    const paths = differences(await this.world.paths(), pathLinesOf(this.model));
    const wrong = [...accountsOf(this.model), ...history, ...paths, ...(await this.world.hangers())];
    if (wrong.length > 0) this.fail(wrong.join('\n'));
  }

  private async compare(): Promise<void> {
    const wrong = [...differences(await this.world.read(), linesOf(this.model)), ...(await this.world.problems())];
    if (wrong.length > 0) this.fail(wrong.join('\n'));
    this.counts.add(this.model.taken.splice(0));
  }

  private remember(operation: Operation, told: readonly Told[]): void {
    if (operation.do !== 'flush') return;
    for (const row of told) if (row.event === 'claimed') this.leases.push(leaseOf(operation.owner, row));
  }
}

/** What is told when a row was locked. */
const BLOCKED = new Set(['busy', 'stuck', 'skipped']);

const leaseOf = (owner: string, { runId, node, generation }: Told): Lease => ({ runId, node, generation, owner });

/** All orders of a few things. */
function* ordersOf(items: readonly number[]): Generator<number[]> {
  if (items.length === 0) yield [];
  for (const first of items) {
    for (const rest of ordersOf(items.filter((item) => item !== first))) yield [first, ...rest];
  }
}
