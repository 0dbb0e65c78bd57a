import { OperatorClient } from '#cyclone/client/operator-client.js';
import { CycloneError, PermanentError } from '#cyclone/model/errors/index.js';
import type { StepContext } from '#cyclone/graph/step-context.js';
import type { NewRun } from '#cyclone/store/submit-store.js';
import { tellFigures } from '../support/figures.js';
import { PROBLEMS_SQL } from '../support/engine-invariants.js';
import { dropTemplate, Fixture, graph, SOON, type TestNode } from '../worker/fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

const SECONDS = 30;
const CLIENTS = 8;
const RUNS = 20;

/** Refusals that say that somebody else was first. */
const EXPECTED = new Set(['CYCLONE_ALREADY_TERMINAL', 'CYCLONE_NOT_PAUSED', 'CYCLONE_NOT_RETRYABLE']);

const OPERATIONS = ['cancel', 'pause', 'resume', 'retry', 'retryAll', 'complete'] as const;

const node = (name: string, kind: string, rest: Partial<TestNode> = {}): TestNode => ({
  node: name,
  kind,
  nodeType: 'step',
  queue: 'default',
  priority: 0,
  inputJson: 'null',
  inputSpec: null,
  openDeps: 0,
  dependents: 0,
  maxAttempts: 2,
  policyJson: null,
  policy: { backoff: SOON },
  ...rest,
});

/** A diamond with a contained branch; some runs have a deadline that comes in the middle. */
function diamond(): NewRun {
  const contained = { backoff: SOON, onDepFailure: 'cancel_branch' } as const;
  const nodes = [
    node('a', 'plain', { dependents: 2 }),
    node('b', 'paid', { openDeps: 1, dependents: 1 }),
    node('c', 'plain', { openDeps: 1, dependents: 1, policy: contained }),
    node('d', 'paid', { openDeps: 2, policy: contained }),
  ];
  const deps = [
    ['b', 'a'],
    ['c', 'a'],
    ['d', 'b'],
    ['d', 'c'],
  ] as const;
  return { ...graph(nodes, deps), deadlineMs: chance(0.2) ? 400 : 60_000 };
}

const chance = (probability: number): boolean => Math.random() < probability;
const oneOf = <T>(items: readonly T[]): T => items[Math.floor(Math.random() * items.length)] as T;

/** Handlers that wait until some client lets one go, in a way that chance decides. */
class Handlers {
  private readonly waiting = new Set<() => void>();
  private open = false;

  readonly plain = async (): Promise<number> => {
    await this.turn();
    if (!this.open && chance(0.3)) throw new Error('no luck');
    if (!this.open && chance(0.1)) throw new PermanentError('never');
    return 1;
  };

  /** Its row would collide with itself if any completion counted twice. */
  readonly paid = async (_input: unknown, ctx: StepContext): Promise<number> => {
    const tx = await ctx.completionTx();
    await tx.query('insert into ledger values ($1, $2, 1)', [ctx.runId, ctx.node]);
    return this.plain();
  };

  /** Lets one go on. */
  complete(): void {
    const [first] = this.waiting;
    if (!first) return;
    this.waiting.delete(first);
    first();
  }

  /** From now on nobody waits and nothing fails. */
  openAll(): void {
    this.open = true;
    for (const go of this.waiting) go();
  }

  private turn(): Promise<void> | undefined {
    return this.open ? undefined : new Promise<void>((resolve) => this.waiting.add(resolve));
  }
}

/** A step that a retry can reopen. */
async function discarded(at: Fixture): Promise<{ id: string; node: string } | undefined> {
  const [found] = await at.rows<{ id: string; node: string }>(
    `select r.id, s.node from cyclone_runs r join cyclone_steps s on s.run_id = r.id
      where r.state = 'failed' and s.state = 'discarded' and not s.contained order by random() limit 1`,
  );
  return found;
}

describe('operators and workers at the same runs', () => {
  it(`never deadlock, strand a run or leave a transaction open: ${CLIENTS} clients at ${RUNS} runs for ${SECONDS} s (R24, S47)`, async () => {
    fixture = await Fixture.open({ poolSize: 30 });
    const handlers = new Handlers();
    const worker = () => ({ plain: handlers.plain, paid: handlers.paid });
    const other = await fixture.another({ poolSize: 30 });
    for (const one of [fixture, other]) await one.worker(worker(), { queues: { default: 30 } }, {}).start();
    const slots = await fixture.submit(...Array.from({ length: RUNS }, diamond));
    const done: Record<string, number> = {};
    const unexpected: unknown[] = [];
    const end = performance.now() + SECONDS * 1_000;

    const client = async (at: Fixture): Promise<void> => {
      const operator = new OperatorClient(at.engine, { warn: (message: string) => unexpected.push(message) } as never);
      const operations: Record<(typeof OPERATIONS)[number], (runId: string) => unknown> = {
        cancel: (runId) => (chance(0.2) ? operator.cancel(runId) : handlers.complete()),
        pause: (runId) => operator.pause(runId),
        resume: (runId) => operator.resume(runId),
        retry: async (runId) => {
          const { id = runId, node: name = 'a' } = (await discarded(at)) ?? {};
          await operator.retry(id, name);
        },
        retryAll: async (runId) => operator.retryAll((await discarded(at))?.id ?? runId),
        complete: () => handlers.complete(),
      };
      while (performance.now() < end || OPERATIONS.some((name) => (done[name] ?? 0) < 3)) {
        const slot = Math.floor(Math.random() * RUNS);
        const runId = slots[slot] as string;
        const name = oneOf(OPERATIONS);
        try {
          await operations[name](runId);
          done[name] = (done[name] ?? 0) + 1;
        } catch (error) {
          if (!CycloneError.is(error) || !EXPECTED.has(error.code)) unexpected.push(error);
        }
        const run = await at.engine.connections.use((session) => at.engine.runs.runInfo(session, runId));
        if (run?.state === 'completed' || run?.state === 'cancelled') slots[slot] = await at.submitOne(diamond());
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index % 2 ? fixture : other)));

    handlers.openAll();
    const operator = new OperatorClient(fixture.engine, { warn: () => undefined } as never);
    const paused = await fixture.rows<{ id: string }>(`select id from cyclone_runs where state = 'paused'`);
    // What still runs may end a paused run meanwhile.
    for (const { id } of paused)
      await operator.resume(id).catch((error: unknown) => expect(error).toMatchObject({ code: 'CYCLONE_NOT_PAUSED' }));
    await fixture.idle();

    const stranded = await fixture.rows(PROBLEMS_SQL);
    const [{ deadlocks } = { deadlocks: -1 }] = await fixture.rows<{ deadlocks: number }>(
      `select deadlocks::int from pg_stat_database where datname = current_database()`,
    );
    const openTransactions = await fixture.rows(
      `select query from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`,
    );
    tellFigures('hammer', {
      clients: CLIENTS,
      runs: RUNS,
      seconds: SECONDS,
      operations: Object.values(done).reduce((sum, times) => sum + times, 0),
      deadlocks,
      stranded: stranded.length,
      openTransactions: openTransactions.length,
    });

    expect(unexpected).toEqual([]);
    expect(stranded).toEqual([]);
    expect(
      await fixture.rows(
        `select run_id, node from cyclone_steps where kind = 'paid' and state = 'completed' except select run_id, node from ledger
         union all (select run_id, node from ledger except select run_id, node from cyclone_steps where state = 'completed')`,
      ),
    ).toEqual([]);
    expect(deadlocks).toBe(0);
    expect(openTransactions).toEqual([]);
    expect([...fixture.log, ...other.log].filter((line) => /deadlock|could not|unhandled/i.test(line))).toEqual([]);
  });
});
