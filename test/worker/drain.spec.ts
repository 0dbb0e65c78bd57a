import { AsyncLocalStorage } from 'node:async_hooks';
import { chain, deferred, dropTemplate, Fixture, graph, job } from './fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

describe('a worker that drains steps', () => {
  it('executes every step once and stores its output', async () => {
    fixture = await Fixture.open();
    const calls = new Map<string, number>();
    const ids = await fixture.submit(...Array.from({ length: 1_000 }, (_, i) => job('double', { n: i })));
    await fixture
      .worker(
        {
          double: (input: { n: number }, ctx) => {
            calls.set(ctx.runId, (calls.get(ctx.runId) ?? 0) + 1);
            return { n: input.n * 2 };
          },
        },
        { queues: { default: 100 } },
      )
      .start();
    await fixture.idle();
    expect(calls.size).toBe(1_000);
    expect([...calls.values()].every((count) => count === 1)).toBe(true);
    const [sum] = await fixture.rows(
      `select count(*)::int as steps, sum((output->>'n')::int)::int as sum, max(lease_generation) as claims from cyclone_steps where state = 'completed'`,
    );
    expect(sum).toEqual({ steps: 1_000, sum: 999_000, claims: 1 });
    expect(ids).toHaveLength(1_000);
  });

  it('hands the output of a step to the next one, finishes the run, and tells of each transition (R4, R33, F21)', async () => {
    fixture = await Fixture.open();
    await fixture.worker({ add: (n: number) => n + 1 }).start();
    const id = await fixture.submitOne(chain(['add', 'add', 'add'], 1));
    await fixture.idle();
    expect(await fixture.step(id, 'n2')).toMatchObject({ state: 'completed', output: 4 });
    expect(fixture.typesOf(id)).toEqual([
      'claimed',
      'completed',
      'promoted',
      'claimed',
      'completed',
      'promoted',
      'claimed',
      'completed',
      'run_completed',
    ]);
  });

  it('stores no output of an action, and null for an output that is undefined (R36)', async () => {
    fixture = await Fixture.open();
    await fixture.worker({ act: { run: () => 'dropped', action: true }, nothing: () => undefined }).start();
    const [act, nothing] = await fixture.submit(job('act', null, { nodeType: 'action' }), job('nothing'));
    await fixture.idle();
    expect(await fixture.rows(`select run_id, output::text from cyclone_steps order by run_id`)).toEqual([
      { run_id: act, output: null },
      { run_id: nothing, output: 'null' },
    ]);
  });

  it('never runs more steps of a queue at once than it has slots, and works on several queues', async () => {
    fixture = await Fixture.open();
    const running = { a: 0, b: 0 };
    const most = { a: 0, b: 0 };
    const run = async (queue: 'a' | 'b'): Promise<void> => {
      most[queue] = Math.max(most[queue], ++running[queue]);
      await new Promise(setImmediate);
      running[queue]--;
    };
    await fixture.submit(
      ...Array.from({ length: 200 }, (_, i) => job('work', i % 2 ? 'a' : 'b', { queue: i % 2 ? 'a' : 'b' })),
    );
    await fixture.worker({ work: run }, { queues: { a: 3, b: 7 } }).start();
    await fixture.idle();
    expect(most.a).toBe(3);
    expect(most.b).toBeGreaterThan(3);
    expect(most.b).toBeLessThanOrEqual(7);
  });

  it('claims nothing of a kind that it does not handle (S27), nor of a queue that it does not serve (R10)', async () => {
    fixture = await Fixture.open();
    await fixture.worker({ known: () => 1 }).start();
    const [unknown, elsewhere] = await fixture.submit(
      job('unknown'),
      job('known', null, { queue: 'elsewhere' }),
      job('known'),
    );
    await fixture.until(`select exists (select 1 from cyclone_steps where state = 'completed')`);
    for (const id of [unknown, elsewhere]) {
      const [row] = await fixture.rows('select state, lease_generation from cyclone_steps where run_id = $1', [id]);
      expect(row).toEqual({ state: 'available', lease_generation: 0 });
    }
  });

  it('joins many branches without losing one (S37)', async () => {
    fixture = await Fixture.open();
    const parents = Array.from({ length: 15 }, (_, i) => `p${i}`);
    const run = graph(
      [
        ...parents.map((node) => ({
          ...(job('part').nodes[0] as ReturnType<typeof job>['nodes'][0]),
          node,
          dependents: 1,
        })),
        { ...(job('join').nodes[0] as ReturnType<typeof job>['nodes'][0]), node: 'join', openDeps: 15 },
      ],
      parents.map((parent) => ['join', parent] as const),
    );
    await fixture.submit(...Array.from({ length: 100 }, () => run));
    const handlers = { part: () => 1, join: () => 2 };
    const other = await fixture.another();
    await fixture.worker(handlers, { queues: { default: 50 } }).start();
    await other.worker(handlers, { queues: { default: 50 } }).start();
    await fixture.idle();
    expect(await fixture.rows(`select state, count(*)::int as n from cyclone_runs group by 1`)).toEqual([
      { state: 'completed', n: 100 },
    ]);
  });

  it('runs handlers outside the async context of whoever submitted (C11)', async () => {
    fixture = await Fixture.open();
    const request = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const worker = fixture.worker({ look: () => void seen.push(request.getStore()) });
    await request.run('start', () => worker.start());
    await fixture.until('select exists (select 1 from cyclone_workers)');
    await request.run('request 1', () => fixture.submit(job('look'), job('look')));
    await fixture.idle();
    expect(seen).toEqual(['start', 'start']);
  });

  it('starts a submitted step at once, without waiting for the next poll (S60)', async () => {
    fixture = await Fixture.open();
    const started = deferred();
    await fixture.worker({ go: () => started.resolve() }, { pollInterval: '1h' }).start();
    await fixture.until('select exists (select 1 from cyclone_workers)');
    await fixture.submit(job('go'));
    await expect(started.promise).resolves.toBeUndefined();
  });

  it('hears of work that another process submits (R28, F41)', async () => {
    fixture = await Fixture.open();
    const other = await fixture.another();
    const started = deferred();
    await fixture.settledWorker({ go: () => started.resolve() });
    await other.submit(job('go'));
    await expect(started.promise).resolves.toBeUndefined();
  });

  it('finds work by polling when it does not listen', async () => {
    fixture = await Fixture.open();
    const other = await fixture.another();
    const started = deferred();
    await fixture.worker({ go: () => started.resolve() }, { pollInterval: 50 }, { listen: false }).start();
    await other.submit(job('go'));
    await expect(started.promise).resolves.toBeUndefined();
  });
});
