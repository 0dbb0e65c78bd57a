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

/** Works a run off: `fate` says of each claimed node whether it is discarded; any other is completed with its name as output. */
async function work(discard: string[] = []): Promise<void> {
  for (let claimed = await db.claim(); claimed.length > 0; claimed = await db.claim()) {
    for (const step of claimed) {
      if (discard.includes(step.node)) await db.failForGood(step);
      else await db.flush([{ ...step, output: step.node }]);
    }
  }
}

async function failed(
  graph: TestGraph,
  discard: string[],
  options: Parameters<EngineSession['submit']>[1] = {},
): Promise<string> {
  const run = await db.submit(graph, options);
  await work(discard);
  expect((await db.run(run)).state).toBe('failed');
  return run;
}

const reasons = (events: EngineEvent[]) => events.map(({ event, info }) => `${event} ${String(info?.reason)}`);

describe('retry', () => {
  it('reopens the discarded node and what was cancelled after it, and keeps the outputs of what completed (R25)', async () => {
    const run = await failed({ a: [], b: ['a'], c: ['b'], d: ['c'] }, ['b']);
    const events = await db.retry(run, 'b', { reason: 'fixed' });
    expect(told(events)).toEqual(['reopened b', 'reopened c', 'reopened d', 'run_retried']);
    expect(events[0]?.info).toEqual({ state: 'available', was: 'discarded', reason: 'fixed' });
    expect(events.at(-1)).toMatchObject({ kind: 'flow', info: { reason: 'fixed' } });
    expect(await db.states(run)).toBe('running: a=completed b=available c=pending d=pending');
    expect(await db.run(run)).toMatchObject({
      open_steps: 3,
      uncontained_discards: 0,
      failed_at: null,
      finished_at: null,
    });
    await work();
    expect((await db.run(run)).state).toBe('completed');
    expect((await db.step(run, 'a')).attempt).toBe(1);
  });

  it('charges each discarded node one attempt, raises the limit at least to it, and clears what the last failure left (R11, R25)', async () => {
    const run = await db.submit({ a: { maxAttempts: 2 }, b: ['a'] });
    await db.query('update cyclone_steps set reclaims = 7');
    await db.fail(await db.claimOne());
    await db.fail(await db.claimOne(), { stack: 'at x', fingerprint: 'f' });
    expect(await db.step(run, 'a')).toMatchObject({ state: 'discarded', attempt: 2, panic_stack: 'at x' });
    await db.retry(run, 'a');
    expect(await db.step(run, 'a')).toMatchObject({
      state: 'available',
      attempt: 3,
      max_attempts: 3,
      reclaims: 0,
      error: null,
      error_kind: null,
      error_fingerprint: null,
      panic_stack: null,
      contained: null,
      finished_at: null,
    });
    expect(await db.step(run, 'b')).toMatchObject({ attempt: 1, max_attempts: 5 });
    await db.failForGood(await db.claimOne());
    await db.retry(run, 'a', { additional: 4 });
    expect(await db.step(run, 'a')).toMatchObject({ attempt: 4, max_attempts: 7 });
  });

  it('makes the node claimable at once, whatever backoff it was in', async () => {
    const run = await db.submit({ a: [], b: [] });
    const claimed = await db.claim();
    await db.fail(claimed[0]!, { delayMs: 3_600_000 });
    await db.failForGood(claimed[1]!);
    await db.retry(run);
    expect(told(await db.claim())).toEqual([`claimed ${claimed[1]!.node}`]);
  });

  it('leaves another discard alone: what hangs on it stays cancelled, and the run fails again at the end (R25)', async () => {
    const run = await db.submit(
      { a: [], x: [], after_a: ['a'], after_x: ['x'], join: ['a', 'x'] },
      { deadlineMs: 60_000 },
    );
    await database.moveClock(61_000);
    await db.claim();
    await db.deadlines();
    expect(await db.states(run)).toBe(
      'failed: a=discarded after_a=discarded after_x=discarded join=discarded x=discarded',
    );
    // What was discarded and is not reopened keeps its node closed.
    expect(told(await db.retry(run, 'a'))).toEqual(['reopened a', 'run_retried']);
    expect(await db.run(run)).toMatchObject({ state: 'running', open_steps: 1, uncontained_discards: 4 });
    expect(told(await db.flush([await db.claimOne()]))).toEqual(['run_failed']);
    expect(await db.states(run)).toBe(
      'failed: a=completed after_a=discarded after_x=discarded join=discarded x=discarded',
    );
    expect(told(await db.retry(run))).toEqual([
      'reopened after_a',
      'reopened after_x',
      'reopened join',
      'reopened x',
      'run_retried',
    ]);
    expect(await db.states(run)).toBe(
      'running: a=completed after_a=available after_x=pending join=pending x=available',
    );
    await work();
    expect((await db.run(run)).state).toBe('completed');
  });

  it('keeps what hangs on a contained discard cancelled, and reopens the rest (R25)', async () => {
    const run = await failed({ a: [], b: branch('a'), x: ['slow'], slow: [], y: ['x'], both: branch('a', 'x') }, [
      'a',
      'x',
    ]);
    expect(await db.states(run)).toBe(
      'failed: a=discarded b=cancelled both=cancelled slow=completed x=discarded y=cancelled',
    );
    expect(await db.step(run, 'a')).toMatchObject({ contained: true });
    expect(told(await db.retry(run, 'x'))).toEqual(['reopened x', 'reopened y', 'run_retried']);
    expect(await db.states(run)).toBe(
      'running: a=discarded b=cancelled both=cancelled slow=completed x=available y=pending',
    );
    await work();
    expect((await db.run(run)).state).toBe('completed');
  });

  it('refuses a contained discard, which retryAll reopens (R25)', async () => {
    const run = await failed({ a: [], b: branch('a'), x: ['slow'], slow: [] }, ['a', 'x']);
    const [refusal] = await db.retry(run, 'a');
    expect(refusal).toMatchObject({
      event: 'refused',
      node: 'a',
      info: { reason: 'not_retryable', nodeState: 'discarded', contained: true },
    });
    expect(told(await db.retry(run))).toEqual(['reopened a', 'reopened b', 'reopened x', 'run_retried']);
    await work();
    expect(await db.states(run)).toBe('completed: a=completed b=completed slow=completed x=completed');
  });

  it('reopens the discarded nodes before the target too: without them it could never become ready', async () => {
    const run = await db.submit({ a: [], m: ['a'], b: ['m'], other: [] }, { deadlineMs: 1_000 });
    await database.moveClock(2_000);
    await db.deadlines();
    expect(told(await db.retry(run, 'b'))).toEqual(['reopened a', 'reopened b', 'reopened m', 'run_retried']);
    expect(await db.states(run)).toBe('running: a=available b=pending m=pending other=discarded');
    await work();
    expect(await db.states(run)).toBe('failed: a=completed b=completed m=completed other=discarded');
  });

  it('can fail and be retried again and again', async () => {
    const run = await failed({ a: [], b: ['a'], c: ['a'], d: ['b', 'c'] }, ['b']);
    for (const discard of ['c', 'd', 'b']) {
      await db.retry(run);
      await work([discard]);
      if (discard !== 'b') expect((await db.run(run)).state).toBe('failed');
    }
    expect((await db.run(run)).state).toBe('completed');
  });

  it('resolves the input of a node whose dependencies completed while the run was paused', async () => {
    const run = await db.submit({ a: [], x: [], b: { spec: { f: 'a' } } });
    const claimed = await db.claim();
    await db.pause(run);
    await db.flush([{ ...claimed.find(({ node }) => node === 'a')!, output: { y: 1 } }]);
    await db.failForGood(claimed.find(({ node }) => node === 'x')!);
    expect(await db.states(run)).toBe('failed: a=completed b=cancelled x=discarded');
    expect(told(await db.retry(run, 'x'))).toEqual(['reopened b', 'reopened x', 'run_retried']);
    expect(await db.step(run, 'b')).toMatchObject({ state: 'available', input: { y: 1 } });
  });

  it('gives signal and child nodes their whole maxWait, and lets a timer keep its wake-up time (R27)', async () => {
    const run = await db.submit({
      x: [],
      timer: { type: 'timer', policy: { waitMs: 60_000 } },
      signal: { type: 'signal', policy: { waitMs: 60_000 } },
      open: { type: 'signal' },
      child: { type: 'child', policy: { waitMs: 60_000 } },
      later: { type: 'timer', after: ['x'], policy: { waitMs: 60_000 } },
    });
    await database.moveClock(20_000);
    await db.failForGood(await db.claimOne());
    await database.moveClock(40_000);
    await db.retry(run);
    expect(await db.states(run)).toBe(
      'running: child=waiting_child later=pending open=waiting_signal signal=waiting_signal timer=waiting_timer x=available',
    );
    const left = await db.query(
      `select node, round(extract(epoch from wake_at - cyclone_now()))::int as seconds from cyclone_steps
        where wake_at is not null and state like 'waiting%' order by node`,
    );
    expect(left).toEqual([
      { node: 'child', seconds: 60 },
      { node: 'signal', seconds: 60 },
      { node: 'timer', seconds: 20 },
    ]);
    await work();
    expect(
      await db.value(
        `select round(extract(epoch from wake_at - cyclone_now()))::int from cyclone_steps where node = 'later'`,
      ),
    ).toBe(60);
    await db.cancel(run);
  });

  it('gives a timer that was cancelled during a pause the time that it had left', async () => {
    const run = await db.submit({ x: [], timer: { type: 'timer', policy: { waitMs: 60_000 } } });
    const x = await db.claimOne();
    await database.moveClock(20_000);
    await db.pause(run);
    await db.failForGood(x);
    await database.moveClock(600_000);
    await db.retry(run);
    expect(
      await db.value(
        `select round(extract(epoch from wake_at - cyclone_now()))::int from cyclone_steps where node = 'timer'`,
      ),
    ).toBe(40);
    await db.cancel(run);
  });
});

describe('retry refuses', () => {
  it.each(['running', 'paused', 'completed', 'cancelled'])('a run that is %s (R25)', async (state) => {
    const run = await db.submit({ a: [] });
    const a = await db.claimOne();
    if (state === 'paused') await db.pause(run);
    if (state === 'completed') await db.flush([a]);
    if (state === 'cancelled') await db.cancel(run);
    for (const node of [null, 'a'])
      expect(await db.retry(run, node)).toMatchObject([{ event: 'refused', info: { reason: 'not_retryable', state } }]);
  });

  it('a node that does not exist, is completed or was cancelled (R25)', async () => {
    const run = await failed({ a: [], b: ['a'], c: ['b'] }, ['b']);
    const before = await db.states(run);
    expect(reasons(await db.retry(run, 'z'))).toEqual(['refused node_not_found']);
    expect(await db.retry(run, 'a')).toMatchObject([
      { event: 'refused', info: { reason: 'not_retryable', state: 'failed', nodeState: 'completed' } },
    ]);
    expect(await db.retry(run, 'c')).toMatchObject([
      { event: 'refused', info: { reason: 'not_retryable', nodeState: 'cancelled' } },
    ]);
    expect(await db.states(run)).toBe(before);
  });

  it('a child run, and names the root run (R31)', async () => {
    const [root, middle] = [await db.submit({ c: { type: 'child' } }), await db.submit({ c: { type: 'child' } })];
    const leaf = await failed({ a: [] }, ['a']);
    await db.query(`update cyclone_runs set parent_run_id = $1, parent_node = 'c' where id = $2`, [root, middle]);
    await db.query(`update cyclone_runs set parent_run_id = $1, parent_node = 'c' where id = $2`, [middle, leaf]);
    expect(await db.retry(leaf)).toMatchObject([
      { event: 'refused', info: { reason: 'child_not_retryable', rootRunId: root } },
    ]);
    expect((await db.run(leaf)).state).toBe('failed');
  });
});
