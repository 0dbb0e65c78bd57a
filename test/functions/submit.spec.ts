import { EngineDatabase, told, type EngineSession } from '../support/engine-sql.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

describe('cyclone_submit', () => {
  it('writes the run, its nodes and its edges at once; nodes without dependencies are available, the rest is pending (R1, R2)', async () => {
    const run = await db.submit(
      { a: [], b: ['a'], c: ['a'], d: ['b', 'c'] },
      { resultNode: 'd', tags: { tenant: '7' } },
    );
    expect(await db.states(run)).toBe('running: a=available b=pending c=pending d=pending');
    expect(await db.run(run)).toMatchObject({
      workflow: 'flow',
      open_steps: 4,
      result_node: 'd',
      tags: { tenant: '7' },
    });
    expect(await db.query('select depends_on, node from cyclone_deps order by 1, 2')).toEqual([
      { depends_on: 'a', node: 'b' },
      { depends_on: 'a', node: 'c' },
      { depends_on: 'b', node: 'd' },
      { depends_on: 'c', node: 'd' },
    ]);
    expect(await db.step(run, 'a')).toMatchObject({ attempt: 1, open_deps: 0, dependents: 2 });
    expect(await db.step(run, 'd')).toMatchObject({ available_at: null, open_deps: 2, dependents: 0 });
  });

  it.each([
    ['step', 'available'],
    ['action', 'available'],
    ['timer', 'waiting_timer'],
    ['signal', 'waiting_signal'],
    ['child', 'waiting_child'],
    ['fan_out', 'pending'],
  ])('starts a %s without dependencies as %s (R2)', async (type, state) => {
    const run = await db.submit({ x: { type, policy: { waitMs: 60_000 } }, y: [] });
    expect((await db.step(run, 'x')).state).toBe(state);
  });

  it('makes many runs in one call, ids in the order of the runs (R8)', async () => {
    const runs = await db.submitMany([{ a: [] }, { a: [], b: ['a'] }, { c: [] }]);
    expect(runs.map(Number)).toEqual([1, 2, 3].map((i) => Number(runs[0]) + i - 1));
    expect(await db.states(runs[1] ?? '')).toBe('running: a=available b=pending');
    expect(await db.states(runs[2] ?? '')).toBe('running: c=available');
  });

  it('counts a delay, the deadline and a root timer from the start of the run (R9)', async () => {
    const graph = { t: { type: 'timer', policy: { waitMs: 5_000 } } };
    const run = await db.submit(graph, { delayMs: 60_000, deadlineMs: 10_000 });
    expect(
      await db.query(
        `select r.starts_at - r.created_at as delay, r.deadline_at - r.starts_at as deadline, s.wake_at - r.starts_at as wake,
                s.scheduled_at = r.starts_at as scheduled
           from cyclone_runs r join cyclone_steps s on s.run_id = r.id where r.id = $1`,
        [run],
      ),
    ).toMatchObject([{ delay: { minutes: 1 }, deadline: { seconds: 10 }, wake: { seconds: 5 }, scheduled: true }]);
  });

  it('lets a start time win over a delay (R9)', async () => {
    const startAt = new Date(Date.now() + 3_600_000);
    const run = await db.submit({ a: [] }, { startAt, delayMs: 1 });
    expect((await db.run(run)).starts_at).toEqual(startAt);
    expect(await db.claim()).toEqual([]);
  });

  it('stores the whole policy on the step (C16)', async () => {
    const backoff = { baseMs: 5, factor: 3, maxMs: 50, jitter: false };
    const policy = { onDepFailure: 'cancel_branch', backoff, timeoutMs: 7, retentionMs: 8, waitMs: 9, concurrency: 10 };
    const run = await db.submit({ a: { maxAttempts: 3, priority: 4, queue: 'q', kind: 'k', input: { x: 1 }, policy } });
    expect(await db.step(run, 'a')).toMatchObject({
      on_dep_failure: 'cancel_branch',
      backoff,
      timeout_ms: '7',
      retention_ms: '8',
      wait_ms: '9',
      concurrency: 10,
      max_attempts: 3,
      priority: 4,
      queue: 'q',
      kind: 'k',
      input: { x: 1 },
    });
  });

  it.each([null, 'hello', '{"a":1}', 5, true, [], { __proto__x: 1 }])(
    'keeps the input %j as it is (S30)',
    async (input) => {
      await db.submit({ a: { input } });
      expect((await db.claimOne()).input).toEqual(input);
    },
  );

  it('exists if and only if the transaction of the caller commits (R6)', async () => {
    await db.query('begin');
    const lost = await db.submit({ a: [] });
    await db.query('rollback');
    await db.query('begin');
    const kept = await db.submit({ a: [] });
    await db.query('commit');
    expect(await db.run(lost)).toEqual({});
    expect(told(await db.claim())).toEqual(['claimed a']);
    expect((await db.run(kept)).state).toBe('running');
  });

  it('takes a graph of 10,000 nodes (R3)', async () => {
    const graph = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`n${i}`, i === 0 ? [] : [`n${i - 1}`]]));
    const run = await db.submit(graph);
    expect(await db.run(run)).toMatchObject({ open_steps: 10_000 });
    await db.cancel(run);
  });
});
