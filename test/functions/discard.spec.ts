import { EngineDatabase, told, type EngineEvent, type EngineSession, type TestGraph } from '../support/engine-sql.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

const branch = (...after: string[]) => ({ after, policy: { onDepFailure: 'cancel_branch' } });

/** Submits a graph, completes the given nodes as they come, and claims what is available then. */
async function start(
  graph: TestGraph,
  completed: string[] = [],
): Promise<{ run: string; leases: Map<string, EngineEvent> }> {
  const run = await db.submit(graph);
  const leases = new Map<string, EngineEvent>();
  for (let done: EngineEvent[] = []; ;) {
    const events = await db.flush(done, { queues: { default: 100 } });
    const claimed = events.filter(({ event }) => event === 'claimed');
    for (const step of claimed) leases.set(step.node, step);
    done = claimed.filter(({ node }) => completed.includes(node));
    if (done.length === 0) return { run, leases };
  }
}

describe('a discard', () => {
  it('fails its run at once and cancels everything that is open in it (R23)', async () => {
    const { run, leases } = await start({
      a: [],
      b: [],
      later: { policy: { timeoutMs: 1 }, kind: 'unserved' },
      after: ['a', 'b'],
      timer: { type: 'timer', policy: { waitMs: 60_000 } },
      signal: { type: 'signal' },
      child: { type: 'child' },
    });
    const events = await db.failForGood(leases.get('a')!);
    expect(told(events)).toEqual([
      'discarded a',
      ...['after', 'b', 'child', 'later', 'signal', 'timer'].map((node) => `cancelled ${node}`),
      'run_failed',
    ]);
    expect(events.find(({ node }) => node === 'b')).toMatchObject({
      generation: 1,
      info: { was: 'running', reason: 'node a was discarded' },
    });
    expect(await db.run(run)).toMatchObject({
      state: 'failed',
      open_steps: 0,
      uncontained_discards: 1,
      failed_at: expect.any(Date),
    });
  });

  it('drops the late result of a sibling, and the run can be retried (S55)', async () => {
    const { run, leases } = await start({ a: [], b: [], c: ['a', 'b'] });
    await db.failForGood(leases.get('a')!);
    expect(told(await db.flush([leases.get('b')!]))).toEqual(['lease_lost b']);
    await db.retry(run);
    expect(await db.states(run)).toBe('running: a=available b=available c=pending');
  });

  it('is contained when every node downstream, however far, declared cancel_branch (R23)', async () => {
    const { run, leases } = await start({ a: [], b: branch('a'), c: branch('b'), other: [] });
    const events = await db.failForGood(leases.get('a')!);
    expect(told(events)).toEqual(['discarded a', 'cancelled b', 'cancelled c']);
    expect(events[0]?.info).toMatchObject({ contained: true });
    expect(await db.states(run)).toBe('running: a=discarded b=cancelled c=cancelled other=running');
    expect(told(await db.flush([leases.get('other')!]))).toEqual(['run_completed']);
    expect(await db.run(run)).toMatchObject({ state: 'completed', uncontained_discards: 0, failed_at: null });
  });

  it('completes the run at once when it is contained and nothing else is open (R23)', async () => {
    const { run, leases } = await start({ before: [], a: ['before'], b: branch('a') }, ['before']);
    expect(told(await db.failForGood(leases.get('a')!))).toEqual(['discarded a', 'cancelled b', 'run_completed']);
    expect(await db.run(run)).toMatchObject({ state: 'completed', finished_at: expect.any(Date) });
  });

  it('of a leaf always fails the run, also when the leaf itself declared cancel_branch (R23)', async () => {
    const { run, leases } = await start({ a: branch(), b: [] });
    expect(told(await db.failForGood(leases.get('a')!))).toEqual(['discarded a', 'cancelled b', 'run_failed']);
    expect((await db.step(run, 'a')).contained).toBe(false);
  });

  it('fails the run when one node far downstream did not declare it (R23)', async () => {
    const { run, leases } = await start({ a: [], b: branch('a'), c: branch('b'), d: ['c'] });
    await db.failForGood(leases.get('a')!);
    expect(await db.states(run)).toBe('failed: a=discarded b=cancelled c=cancelled d=cancelled');
  });

  it('of one branch of a diamond takes the join with it, and leaves the other branch alone (R23)', async () => {
    const { run, leases } = await start({ a: [], b: ['a'], c: ['a'], d: branch('b', 'c'), e: branch('d'), f: ['c'] }, [
      'a',
    ]);
    expect(told(await db.failForGood(leases.get('b')!))).toEqual(['discarded b', 'cancelled d', 'cancelled e']);
    expect(told(await db.flush([leases.get('c')!]))).toEqual(['promoted f']);
    expect(await db.states(run)).toBe(
      'running: a=completed b=discarded c=completed d=cancelled e=cancelled f=available',
    );
    expect(told(await db.flush(await db.claim()))).toEqual(['run_completed']);
  });

  it('of the second of two branches that share a join is contained too', async () => {
    const { run, leases } = await start({ b: [], c: [], d: branch('b', 'c') });
    await db.failForGood(leases.get('b')!);
    expect(told(await db.failForGood(leases.get('c')!))).toEqual(['discarded c', 'run_completed']);
    expect(await db.states(run)).toBe('completed: b=discarded c=discarded d=cancelled');
  });

  it('that is contained, followed by one that is not, fails the run', async () => {
    const { run, leases } = await start({ a: [], b: branch('a'), x: [] });
    await db.failForGood(leases.get('a')!);
    expect(told(await db.failForGood(leases.get('x')!))).toEqual(['discarded x', 'run_failed']);
    expect(await db.run(run)).toMatchObject({ uncontained_discards: 1 });
  });

  it('goes through a graph that is wide and deep with one step of each node', async () => {
    const layers = Array.from({ length: 12 }, (_row, l) => Array.from({ length: 12 }, (_node, i) => `${l}.${i}`));
    const graph: TestGraph = { root: [] };
    layers.forEach((layer, l) => layer.forEach((node) => (graph[node] = branch(...(layers[l - 1] ?? ['root'])))));
    const { run, leases } = await start(graph);
    expect(told(await db.failForGood(leases.get('root')!))).toHaveLength(1 + 144 + 1);
    expect((await db.run(run)).state).toBe('completed');
  });

  it('cancels a branch that waits for a signal, so that nothing holds the run (S80)', async () => {
    const { run, leases } = await start({ a: [], s: { type: 'signal', ...branch('a', 'x') }, x: [] });
    await db.flush([leases.get('x')!]);
    expect(told(await db.failForGood(leases.get('a')!))).toEqual(['discarded a', 'cancelled s', 'run_completed']);
    expect((await db.run(run)).state).toBe('completed');
  });

  it('in a paused run fails it as it does without a pause (R26, spec 3)', async () => {
    const { run, leases } = await start({ a: [], b: ['a'], c: { kind: 'unserved' } });
    await db.pause(run);
    expect(told(await db.failForGood(leases.get('a')!))).toEqual([
      'discarded a',
      'cancelled b',
      'cancelled c',
      'run_failed',
    ]);
    expect(await db.run(run)).toMatchObject({ state: 'failed', paused_at: null });
  });

  it('that is contained leaves a paused run paused, or completes it when nothing is left (R26)', async () => {
    const { run, leases } = await start({ a: [], b: branch('a'), c: [], d: branch('c') });
    await db.pause(run);
    await db.failForGood(leases.get('a')!);
    expect(await db.states(run)).toBe('paused: a=discarded b=cancelled c=running d=pending');
    expect(told(await db.failForGood(leases.get('c')!))).toEqual(['discarded c', 'cancelled d', 'run_completed']);
    expect(await db.run(run)).toMatchObject({ state: 'completed', paused_at: null });
  });

  it('stops the deadline of the run when it ends it', async () => {
    const run = await db.submit({ a: [] }, { deadlineMs: 60_000 });
    await db.failForGood(await db.claimOne());
    expect((await db.run(run)).deadline_at).toBeNull();
  });

  it('leaves a row for each running execution that it cancels', async () => {
    const { leases } = await start({ a: [], b: [], c: ['a'] });
    await db.failForGood(leases.get('a')!);
    expect(await db.query('select node, outcome, error from cyclone_attempts order by node')).toEqual([
      { node: 'a', outcome: 'discarded', error: 'boom' },
      { node: 'b', outcome: 'cancelled', error: 'node a was discarded' },
    ]);
  });
});

describe('an input that is too large to resolve (R36)', () => {
  /** The limit is 64 MiB; the tests do with less. */
  const LIMIT = 67_108_864;
  const resolver = 'cyclone_resolve_input(bigint, jsonb)';
  let original: string;
  beforeAll(async () => {
    original = await db.value<string>(`select pg_get_functiondef('${resolver}'::regprocedure)`);
    const lowered = original.replace(String(LIMIT), '1000');
    if (lowered === original) throw new Error('The limit is no longer where this test looks for it.');
    await db.client.query(lowered);
  });
  afterAll(() => db.client.query(original));

  /** One copy of this output fits into an input, two do not. */
  const output = 'x'.repeat(700);
  const twice = { o: { x: { f: 'a' }, y: { f: 'a' } } };

  it('discards the node as permanent, with its policy', async () => {
    const run = await db.submit({ a: [], b: { spec: twice }, c: branch('b'), d: { spec: { f: 'a' } } });
    const events = await db.flush([{ ...(await db.claimOne()), output }]);
    expect(told(events).toSorted()).toEqual(['cancelled c', 'discarded b', 'promoted d']);
    expect(await db.step(run, 'b')).toMatchObject({ state: 'discarded', error_kind: 'permanent', contained: true });
  });

  it('discards one node when two of a run are too large, and cancels the other', async () => {
    const run = await db.submit({ a: [], b: { spec: twice }, c: { spec: twice } });
    const events = await db.flush([{ ...(await db.claimOne()), output }]);
    expect(told(events)).toEqual(['discarded b', 'cancelled c', 'run_failed']);
    expect(await db.states(run)).toBe('failed: a=completed b=discarded c=cancelled');
  });

  it('does the same when it comes up at resume', async () => {
    const run = await db.submit({ a: [], b: { spec: twice }, c: { spec: twice } });
    const a = await db.claimOne();
    await db.pause(run);
    await db.flush([{ ...a, output }]);
    expect(told(await db.resume(run)).filter((event) => event.startsWith('discarded'))).toHaveLength(1);
    expect((await db.run(run)).state).toBe('failed');
  });

  it('cancels what the same call has just claimed, and says so after the claim', async () => {
    const run = await db.submit({ a: [], b: { spec: twice }, d: ['a'] });
    const events = await db.flush([{ ...(await db.claimOne()), output }], { queues: { default: 5 } });
    expect(told(events)).toEqual(['claimed d', 'discarded b', 'cancelled d', 'run_failed']);
    expect(await db.states(run)).toBe('failed: a=completed b=discarded d=cancelled');
  });
});
