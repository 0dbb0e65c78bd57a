import { EngineDatabase, told, type EngineSession, type TestGraph } from '../support/engine-sql.js';
import { Gates } from '../support/gate.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

const ALL = { queues: { default: 100 } };

/** Claims and completes whatever there is, until nothing is; gives the nodes in the order of their claims. */
async function drain(session = db): Promise<string[]> {
  const order: string[] = [];
  for (let claimed = await session.claim(); claimed.length > 0;) {
    order.push(...claimed.map(({ node }) => node));
    const events = await session.flush(
      claimed.map((step) => ({ ...step, output: step.node })),
      ALL,
    );
    claimed = events.filter(({ event }) => event === 'claimed');
  }
  return order;
}

describe('a flush', () => {
  it('stores the output, and an action has none', async () => {
    const run = await db.submit({ a: [], b: { type: 'action' } });
    const claimed = await db.claim();
    const events = await db.flush(
      claimed.map((step) => ({ ...step, output: step.node === 'a' ? { total: 7 } : undefined })),
    );
    expect(told(events)).toEqual(['run_completed']);
    expect(events[0]).toMatchObject({ run_id: run, kind: 'flow' });
    expect(await db.step(run, 'a')).toMatchObject({
      state: 'completed',
      output: { total: 7 },
      lease_owner: null,
      lease_expiry: null,
    });
    expect(await db.step(run, 'b')).toMatchObject({ state: 'completed', output: null });
    expect(await db.run(run)).toMatchObject({ state: 'completed', open_steps: 0, finished_at: expect.any(Date) });
  });

  it('forgets the error of an earlier attempt when the step completes', async () => {
    const run = await db.submit({ a: [] });
    await db.fail(await db.claimOne(), { stack: 'at x' });
    expect(await db.step(run, 'a')).toMatchObject({
      error: 'boom',
      error_kind: 'retryable',
      panic_stack: 'at x',
      attempt: 2,
    });
    await db.flush([await db.claimOne()]);
    expect(await db.step(run, 'a')).toMatchObject({ error: null, error_kind: null, panic_stack: null, attempt: 2 });
  });

  it('promotes a dependent with the completion of its last dependency, and not before', async () => {
    const run = await db.submit({ a: [], b: [], c: ['a', 'b'] });
    const [a, b] = await db.claim();
    expect(told(await db.flush([a!]))).toEqual([]);
    expect(await db.step(run, 'c')).toMatchObject({ state: 'pending', open_deps: 1 });
    expect(told(await db.flush([b!]))).toEqual(['promoted c']);
    expect(await db.step(run, 'c')).toMatchObject({ state: 'available', open_deps: 0, available_at: expect.any(Date) });
  });

  it('promotes once when both dependencies complete in one batch', async () => {
    await db.submit({ a: [], b: [], c: ['a', 'b'] });
    expect(told(await db.flush(await db.claim()))).toEqual(['promoted c']);
  });

  it.each([
    ['timer', 'waiting_timer'],
    ['signal', 'waiting_signal'],
    ['child', 'waiting_child'],
  ])('lets a %s wait from its promotion on (R29)', async (type, state) => {
    const run = await db.submit({ a: [], w: { after: ['a'], type, policy: { waitMs: 60_000 } } });
    await database.moveClock(3_600_000);
    expect(told(await db.flush([await db.claimOne()]))).toEqual(['waiting w']);
    expect(await db.step(run, 'w')).toMatchObject({ state });
    expect(await db.query(`select wake_at - available_at as wait from cyclone_steps where node = 'w'`)).toMatchObject([
      { wait: { minutes: 1 } },
    ]);
  });

  it('runs a graph of diamonds in the order of its edges', async () => {
    const graph: TestGraph = { a: [], b: ['a'], c: ['a'], d: ['b', 'c'], e: ['d', 'a'], f: ['b'], g: ['e', 'f'] };
    const run = await db.submit(graph);
    const order = await drain();
    for (const [node, upstream] of Object.entries(graph as Record<string, string[]>)) {
      for (const on of upstream) expect(order.indexOf(on)).toBeLessThan(order.indexOf(node));
    }
    expect(order).toHaveLength(7);
    expect((await db.run(run)).state).toBe('completed');
  });

  it('completes, promotes and claims a chain of one worker with one call for each step (§8)', async () => {
    await db.submit({ a: [], b: ['a'], c: ['b'] });
    let claimed = await db.claim();
    for (const next of ['claimed b', 'claimed c', 'run_completed']) {
      const events = await db.flush(claimed, ALL);
      expect(told(events)).toEqual([next]);
      claimed = events;
    }
  });

  it('survives a batch that names a step twice', async () => {
    const run = await db.submit({ a: [], b: ['a'] });
    const a = await db.claimOne();
    await db.flush([a, a]);
    expect(await db.states(run)).toBe('running: a=completed b=available');
  });
});

describe('a flush of two executions of one step', () => {
  it('keeps the one that holds the lease and drops the other, in one batch (R12)', async () => {
    await db.submit({ a: [] });
    const first = await db.claimOne();
    await db.settle('released', first);
    const second = await db.claimOne();
    const events = await db.flush([
      { ...first, output: 'first' },
      { ...second, output: 'second' },
    ]);
    expect(events.map(({ event, generation }) => [event, generation])).toEqual([
      ['lease_lost', 1],
      ['run_completed', null],
    ]);
    expect(await db.value('select output from cyclone_steps')).toBe('second');
  });
});

describe('the input of a promoted node', () => {
  const resolve = async (spec: unknown, outputs: Record<string, unknown>): Promise<unknown> => {
    await db.submit({ ...Object.fromEntries(Object.keys(outputs).map((node) => [node, []])), target: { spec } });
    const claimed = await db.claim();
    const events = await db.flush(
      claimed.map((step) => ({ ...step, output: outputs[step.node] })),
      ALL,
    );
    expect(told(events)).toEqual(['claimed target']);
    const stored = await db.value(`select input from cyclone_steps where node = 'target'`);
    expect(stored).toEqual(events[0]?.input);
    return stored;
  };

  it.each<[string, unknown, Record<string, unknown>, unknown]>([
    ['an output', { f: 'a' }, { a: { x: [1, null] } }, { x: [1, null] }],
    ['a null output', { f: 'a' }, { a: null }, null],
    ['no output', { f: 'a' }, { a: undefined }, null],
    ['a key', { f: 'a', k: ['x'] }, { a: { x: 'y' } }, 'y'],
    ['a key that is null', { f: 'a', k: ['x'] }, { a: { x: null } }, null],
    ['a missing key', { f: 'a', k: ['z'] }, { a: { x: 1 } }, null],
    ['a key of what is no object', { f: 'a', k: ['x'] }, { a: 'x' }, null],
    ['a key below keys', { f: 'a', k: ['x', 'y', 'z'] }, { a: { x: { y: { z: 'deep' } } } }, 'deep'],
    ['a null below keys', { f: 'a', k: ['x', 'y'] }, { a: { x: { y: null } } }, null],
    ['a key that is missing on the first level', { f: 'a', k: ['z', 'y'] }, { a: { x: { y: 1 } } }, null],
    ['a key that is missing on the last level', { f: 'a', k: ['x', 'z'] }, { a: { x: { y: 1 } } }, null],
    ['a key below null', { f: 'a', k: ['x', 'y'] }, { a: { x: null } }, null],
    ['a key below a list', { f: 'a', k: ['x', '0'] }, { a: { x: ['y'] } }, null],
    [
      'an object without what is missing on any level',
      {
        o: {
          v: { f: 'a', k: ['z', 'y'] },
          w: { f: 'a', k: ['x', 'z'] },
          x: { f: 'a', k: ['x', 'y'] },
          y: { f: 'a', k: ['x', 'n'] },
        },
      },
      { a: { x: { y: 1, n: null } } },
      { x: 1, y: null },
    ],
    ['a key of a list', { f: 'a', k: ['0'] }, { a: ['x'] }, null],
    ['a literal', { o: { l: { l: { f: 'a' } }, a: { f: 'a' } } }, { a: 1 }, { l: { f: 'a' }, a: 1 }],
    [
      'an object',
      { o: { x: { f: 'a' }, y: { f: 'b', k: ['k'] }, z: { l: 3 } } },
      { a: 1, b: { k: 2 } },
      { x: 1, y: 2, z: 3 },
    ],
    ['an object without a missing key', { o: { x: { f: 'a', k: ['gone'] }, y: { l: 1 } } }, { a: {} }, { y: 1 }],
    ['an object with a key that is null', { o: { x: { f: 'a', k: ['n'] } } }, { a: { n: null } }, { x: null }],
    ['an object of missing keys only', { o: { x: { f: 'a', k: ['gone'] } } }, { a: 7 }, {}],
    ['a list', { a: [{ f: 'b' }, { l: 'x' }, { f: 'a', k: ['gone'] }, { f: 'a' }] }, { a: 1, b: 2 }, [2, 'x', null, 1]],
    [
      'a list inside an object inside a list',
      { a: [{ o: { x: { a: [{ f: 'a' }, { a: [] }] } } }] },
      { a: 1 },
      [{ x: [1, []] }],
    ],
    [
      'keys that JavaScript knows',
      { o: { __proto__x: { f: 'a', k: ['constructor'] } } },
      { a: { constructor: 1 } },
      { __proto__x: 1 },
    ],
  ])('is made of %s (R4)', async (_name, spec, outputs, expected) => {
    expect(await resolve(spec, outputs)).toEqual(expected);
  });

  it('is made once: a later attempt gets the same (§9)', async () => {
    await db.submit({ a: [], b: { spec: { f: 'a' } } });
    const [first] = await db.flush([{ ...(await db.claimOne()), output: { x: 1 } }], ALL);
    await db.fail(first!);
    expect(await db.claimOne()).toMatchObject({ node: 'b', attempt: 2, input: { x: 1 } });
  });
});

describe('a flush that meets others', () => {
  it('drops a result whose lease another owner has, or had an earlier generation of, and keeps the rest (R12)', async () => {
    const [run] = await db.submitMany([{ a: [], b: [], c: [], d: ['a', 'b', 'c'] }]);
    const claimed = await db.claim();
    const [a, b, c] = ['a', 'b', 'c'].map((node) => claimed.find((step) => step.node === node)!);
    // a is as it was; b is running for us again, one generation later; c has another owner, in the same generation.
    await db.settle('released', b!);
    expect(await db.claimOne()).toMatchObject({ node: 'b', generation: 2 });
    await db.query(`update cyclone_steps set lease_owner = 'other' where node = 'c'`);
    const events = await db.flush([a!, b!, c!]);
    expect(told(events).toSorted()).toEqual(['lease_lost b', 'lease_lost c']);
    expect(events.find(({ node }) => node === 'b')).toMatchObject({ run_id: run, generation: 1 });
    expect(await db.states(run!)).toBe('running: a=completed b=running c=running d=pending');
  });

  it.each(['cancelled', 'purged'])('drops the result of a run that was %s meanwhile (R12)', async (fate) => {
    const run = await db.submit({ a: [] });
    const a = await db.claimOne();
    if (fate === 'cancelled') await db.cancel(run);
    else await db.query('with s as (delete from cyclone_steps) delete from cyclone_runs');
    expect(told(await db.flush([a]))).toEqual(['lease_lost a']);
  });

  it('gives back the steps of a locked run as busy and does not wait, and they complete with the next (C2)', async () => {
    const [locked, free] = await db.submitMany([
      { a: [], b: ['a'] },
      { a: [], b: ['a'] },
    ]);
    const claimed = await db.claim();
    const other = await database.open();
    await other.query('begin');
    await other.query('select from cyclone_runs where id = $1 for no key update', [locked]);
    const events = await db.flush(claimed);
    expect(events.map(({ event, run_id, node }) => [event, run_id, node])).toEqual([
      ['busy', locked, 'a'],
      ['promoted', free, 'b'],
    ]);
    await other.query('commit');
    expect(told(await db.flush(claimed.filter(({ run_id }) => run_id === locked)))).toEqual(['promoted b']);
  });

  it('never strands the dependent of two siblings that complete in two sessions at once', async () => {
    const gates = await Gates.install(database);
    const run = await db.submit({ a: [], b: [], c: ['a', 'b'] });
    const claimed = await db.claim();
    const [a, b] = ['a', 'b'].map((node) => claimed.find((step) => step.node === node)!);
    const [one, two] = [await database.open(), await database.open()];
    await gates.shut('step a completed');
    const first = await gates.park(one, one.flush([a!]));
    expect(told(await two.flush([b!]))).toEqual(['busy b']);
    await gates.open('step a completed');
    expect(told(await first.result)).toEqual([]);
    expect(told(await two.flush([b!]))).toEqual(['promoted c']);
    expect(await db.states(run)).toBe('running: a=completed b=completed c=available');
  });

  it('ends two hundred joins of five siblings, completed by four sessions, without a stranded run (S37)', async () => {
    const parents = ['a', 'b', 'c', 'd', 'e'];
    const runs = await db.submitMany(
      Array.from({ length: 200 }, () => ({ ...Object.fromEntries(parents.map((p) => [p, []])), z: parents })),
    );
    const sessions = await Promise.all(Array.from({ length: 4 }, () => database.open()));
    await Promise.all(
      sessions.map(async (session, i) => {
        const owner = `w${i}`;
        let done: Awaited<ReturnType<EngineSession['flush']>> = [];
        do {
          const events = await session.flush(done, { owner, queues: { default: 25 } });
          const busy = events.filter(({ event }) => event === 'busy');
          done = [
            ...events.filter(({ event }) => event === 'claimed'),
            ...done.filter((step) => busy.some((b) => b.run_id === step.run_id && b.node === step.node)),
          ];
        } while (done.length > 0);
      }),
    );
    while ((await drain()).length > 0);
    expect(await db.query(`select state, count(*)::int as n from cyclone_runs group by state`)).toEqual([
      { state: 'completed', n: runs.length },
    ]);
  });
});

describe('a flush that claims', () => {
  it('claims what it promotes, in the same call, and says that it is both (F21)', async () => {
    const run = await db.submit({ a: [], b: ['a'] });
    const events = await db.flush([await db.claimOne()], ALL);
    expect(events).toMatchObject([
      { event: 'claimed', node: 'b', generation: 1, attempt: 1, info: { promoted: true } },
    ]);
    expect(await db.step(run, 'b')).toMatchObject({ state: 'running', lease_owner: 'me', lease_generation: 1 });
  });

  it('leaves what it promotes to others when better work is in the queue (R10)', async () => {
    const now = Date.now();
    const ours = await db.submit({ a: [], b: ['a'] }, { startAt: new Date(now - 10_000) });
    const a = await db.claimOne();
    await db.submit({ urgent: { priority: -1 } });
    await db.submit({ older: {} }, { startAt: new Date(now - 20_000) });
    await db.submit({ younger: {} }, { startAt: new Date(now - 5_000) });
    const events = await db.flush([a], { queues: { default: 2 } });
    expect(told(events).toSorted()).toEqual(['claimed older', 'claimed urgent', 'promoted b']);
    expect((await db.step(ours, 'b')).state).toBe('available');
    expect(told(await db.claim({ queues: { default: 1 } }))).toEqual(['claimed b']);
  });

  it('prefers what it promotes to younger and less urgent work, and never takes more than its slots (R10)', async () => {
    const now = Date.now();
    await db.submit({ a: [], b: ['a'], c: ['a'], d: ['a'] }, { startAt: new Date(now - 10_000) });
    const a = await db.claimOne();
    await db.submit({ younger: {} }, { startAt: new Date(now - 5_000) });
    const events = await db.flush([a], { queues: { default: 2 } });
    expect(told(events).toSorted()).toEqual(['claimed b', 'claimed c', 'promoted d']);
    expect(await db.value(`select count(*)::int from cyclone_steps where state = 'running'`)).toBe(2);
  });

  it('claims a promoted step only of a kind and a queue that it serves, and with a slot free there', async () => {
    await db.submit({
      a: [],
      kind: { after: ['a'], kind: 'other' },
      queue: { after: ['a'], queue: 'other' },
      full: { after: ['a'], queue: 'full' },
      mine: ['a'],
    });
    const a = await db.claimOne();
    const events = await db.flush([a], { queues: { default: 9, full: 0 } });
    expect(told(events).toSorted()).toEqual(['claimed mine', 'promoted full', 'promoted kind', 'promoted queue']);
  });

  it('never exceeds its slots in two queues at once', async () => {
    await db.submitMany(Array.from({ length: 4 }, () => ({ a: [], b: { after: ['a'], queue: 'x' }, c: ['a'] })));
    await db.submitMany(Array.from({ length: 4 }, () => ({ y: { queue: 'x' }, z: {} })));
    const claimed = await db.claim({ queues: { default: 4 } });
    const events = await db.flush(claimed, { queues: { default: 3, x: 2 } });
    const queues = events.filter(({ event }) => event === 'claimed').map(({ queue }) => queue);
    expect(queues.toSorted()).toEqual(['default', 'default', 'default', 'x', 'x']);
  });
});

describe('a flush of a paused run', () => {
  it('completes what was running and promotes nothing until resume (R26)', async () => {
    const run = await db.submit({ a: [], b: ['a'] });
    const a = await db.claimOne();
    await db.pause(run);
    expect(told(await db.flush([a], ALL))).toEqual([]);
    expect(await db.states(run)).toBe('paused: a=completed b=pending');
    expect(told(await db.resume(run))).toEqual(['run_resumed', 'promoted b']);
  });

  it('completes the run with its last node (spec 3, Paused run)', async () => {
    const run = await db.submit({ a: [] });
    const a = await db.claimOne();
    await db.pause(run);
    expect(told(await db.flush([a], ALL))).toEqual(['run_completed']);
    expect(await db.run(run)).toMatchObject({ state: 'completed', paused_at: null });
  });
});
