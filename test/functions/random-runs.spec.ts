import fc from 'fast-check';
import { EngineDatabase, type EngineEvent, type EngineSession, type TestGraph } from '../support/engine-sql.js';

/** More of them find rarer things: CYCLONE_RANDOM_RUNS=1000 npm run jest -- test/functions/random-runs.spec.ts */
const NUM_RUNS = Number(process.env.CYCLONE_RANDOM_RUNS ?? 12);
const SEED = process.env.CYCLONE_RANDOM_SEED ? { seed: Number(process.env.CYCLONE_RANDOM_SEED) } : {};

const TYPES = ['step', 'step', 'step', 'action', 'timer', 'signal', 'child'] as const;
const ACTIONS = [
  'claim',
  'claim',
  'flush',
  'flush',
  'flush and claim',
  'complete',
  'fail',
  'discard',
  'snooze',
  'release',
  'crash',
  'expire',
  'pause',
  'resume',
  'retry',
  'retryAll',
  'cancel',
  'heartbeat',
] as const;

/** Nodes depend on earlier ones only, so that every graph is acyclic. */
const graphs = fc
  .array(
    fc.record({
      type: fc.constantFrom(...TYPES),
      after: fc.array(fc.nat(5), { maxLength: 3 }),
      refers: fc.boolean(),
      contained: fc.boolean(),
      maxAttempts: fc.integer({ min: 1, max: 2 }),
    }),
    { minLength: 1, maxLength: 6 },
  )
  .map((nodes) =>
    nodes.reduce<TestGraph>((graph, node, i) => {
      const after = node.after.filter((upstream) => upstream < i).map((upstream) => `n${upstream}`);
      graph[`n${i}`] = {
        type: node.type,
        maxAttempts: node.maxAttempts,
        after,
        ...(node.refers && after[0] !== undefined ? { spec: { f: after[0] } } : {}),
        policy: { ...(node.contained ? { onDepFailure: 'cancel_branch' } : {}), waitMs: 3_600_000 },
      };
      return graph;
    }, {}),
  );

const operation = fc.record({ action: fc.constantFrom(...ACTIONS), pick: fc.nat(1_000) });
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** Two processes that work on the same runs, and what became of the executions that they started. */
class Storm {
  private clock = 0;
  /** Every lease that was ever given out: the stale ones are tried too. */
  private readonly leases: EngineEvent[] = [];
  private readonly completed = new Map<string, number>();

  constructor(
    private readonly database: EngineDatabase,
    private readonly sessions: readonly [EngineSession, EngineSession],
    private readonly runs: string[],
  ) {}

  /** One operation in each session, at the same time. */
  async perform(one: Operation, two: Operation): Promise<void> {
    await Promise.all([this.act(this.sessions[0], 'w0', one), this.act(this.sessions[1], 'w1', two)]);
  }

  /** Lets everything that is left run to its end, with operations that only help. */
  async settle(): Promise<void> {
    const [session] = this.sessions;
    for (const run of this.runs) await session.resume(run);
    await session.query('update cyclone_steps set scheduled_at = now() - interval $$1 s$$ where state = $$available$$');
    await this.moveClock(100_000);
    await session.sweep({ maxReclaims: null });
    for (let progress = true; progress;) {
      const claimed = await session.claim({ owner: 'w0' });
      await this.flush(session, 'w0', claimed, {});
      progress = (await this.wake(session)) || claimed.length > 0;
    }
  }

  /** What the engine calls elsewhere: a wait ends. */
  private async wake(session: EngineSession): Promise<boolean> {
    const waiting = await session.query<{ run_id: string; node: string }>(
      `select run_id, node from cyclone_steps where state in ('waiting_timer', 'waiting_signal', 'waiting_child') limit 1`,
    );
    for (const { run_id: run } of waiting) await session.cancel(run);
    return waiting.length > 0;
  }

  get completedTwice(): string[] {
    return [...this.completed].filter(([, times]) => times > 1).map(([step]) => step);
  }

  private async act(session: EngineSession, owner: string, { action, pick }: Operation): Promise<void> {
    const run = this.runs[pick % this.runs.length]!;
    const lease = this.leases[pick % Math.max(1, this.leases.length)];
    const own = lease ? [lease] : [];
    switch (action) {
      case 'claim':
        this.leases.push(...(await session.claim({ owner, queues: { default: 1 + (pick % 3) } })));
        return;
      case 'flush':
        return this.flush(session, owner, this.leases.slice(-3), {});
      case 'flush and claim':
        return this.flush(session, owner, own, { default: 2 });
      case 'complete':
        return this.complete(session, owner, lease);
      case 'fail':
        await session.fail(own, { owner });
        return;
      case 'discard':
        await session.fail(own, { owner, errorKind: 'permanent' });
        return;
      case 'snooze':
        await session.settle('snoozed', own, { owner, delayMs: 0 });
        return;
      case 'release':
        await session.settle('released', own, { owner });
        return;
      case 'crash':
        await this.moveClock(31_000);
        await session.sweep({ maxReclaims: 2 });
        return;
      case 'expire':
        await this.moveClock(40_000);
        await session.deadlines();
        return;
      case 'pause':
        await session.pause(run);
        return;
      case 'resume':
        await session.resume(run);
        return;
      case 'retry':
        await session.retry(run, `n${pick % 4}`);
        return;
      case 'retryAll':
        await session.retry(run);
        return;
      case 'cancel':
        if (pick % 4 === 0) await session.cancel(run);
        return;
      case 'heartbeat':
        await session.heartbeat(pick % 2 ? null : own, { owner });
    }
  }

  private async flush(
    session: EngineSession,
    owner: string,
    done: EngineEvent[],
    queues: Record<string, number>,
  ): Promise<void> {
    const events = await session.flush(
      done.map((step) => ({ ...step, output: step.node })),
      { owner, queues },
    );
    this.leases.push(...events.filter(({ event }) => event === 'claimed'));
    const refused = new Set(events.filter(({ event }) => event === 'busy' || event === 'lease_lost').map(keyOf));
    for (const step of done) if (!refused.has(keyOf(step))) this.note(step);
  }

  private async complete(session: EngineSession, owner: string, lease: EngineEvent | undefined): Promise<void> {
    if (!lease) return;
    await session.beginCompletion(lease);
    try {
      await session.complete(lease, 'done', owner);
      await session.query('commit');
      this.note(lease);
    } catch (error) {
      await session.query('rollback');
      if ((error as { code?: string }).code !== 'CY001') throw error;
    }
  }

  private note(step: EngineEvent): void {
    const key = `${step.run_id}/${step.node}`;
    this.completed.set(key, (this.completed.get(key) ?? 0) + 1);
  }

  /** The clock only goes forward. */
  private moveClock(ms: number): Promise<void> {
    this.clock += ms;
    return this.database.moveClock(this.clock);
  }
}

const keyOf = (event: EngineEvent) => `${event.run_id}/${event.node}/${event.generation}`;

describe('random operations of two processes on random graphs', () => {
  let database: EngineDatabase;
  beforeAll(async () => {
    database = await EngineDatabase.create();
  });
  afterAll(() => database.drop());

  async function storm(graphsOfRuns: TestGraph[], operations: [Operation, Operation][]): Promise<void> {
    const sessions: [EngineSession, EngineSession] = [await database.open(), await database.open()];
    const runs = await database.main.submitMany(graphsOfRuns, { deadlineMs: 100_000 });
    const both = new Storm(database, sessions, runs);
    for (const [one, two] of operations) {
      await both.perform(one, two);
      expect(await database.main.problems()).toEqual([]);
    }
    await both.settle();
    expect(both.completedTwice).toEqual([]);
    expect(await database.main.query(`select id from cyclone_runs where state in ('running', 'paused')`)).toEqual([]);
  }

  it('leave all counters right, no run stranded, no step completed twice, and every change of state in the table (R2, R12, R24)', async () => {
    const runs = fc.array(graphs, { minLength: 1, maxLength: 3 });
    const operations = fc.array(fc.tuple(operation, operation), { minLength: 5, maxLength: 16 });
    const property = fc.asyncProperty(runs, operations, (...given) => storm(...given).finally(() => database.clear()));
    await fc.assert(property, { numRuns: NUM_RUNS, ...SEED });
  }, 600_000);
});
