import { describeReason, type Explanation } from '#cyclone/model/explanation.js';
import { InspectionStore } from '#cyclone/store/inspection-store.js';
import { EngineDatabase, type EngineSession, type TestGraph } from '../support/engine-sql.js';
import { sessionOf } from '../support/session-of.js';

const store = new InspectionStore('public');
let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

const explain = (run: string, node: string): Promise<Explanation | undefined> =>
  store.explain(sessionOf(db), run, node);

/** The reasons of a node, and that each of them can be said in a sentence. */
async function why(run: string, node: string): Promise<unknown> {
  const reasons = (await explain(run, node))?.reasons ?? [];
  for (const reason of reasons) expect(describeReason(reason)).toMatch(/^[A-Z].*\w/);
  return reasons;
}

/** The first reason as a sentence. */
async function said(run: string, node: string): Promise<string> {
  return describeReason((await explain(run, node))!.reasons![0]!);
}

const worker = (id: string, queues: Record<string, number>, kinds: string[]) =>
  db.call('cyclone_register_worker', id, 'host', 1, '1', JSON.stringify(queues), kinds);

describe('explain: why is this node not running?', () => {
  it('knows nothing of a run or a node that does not exist', async () => {
    const run = await db.submit({ a: [] });
    expect(await explain('999999999999', 'a')).toBeUndefined();
    expect(await explain(run, 'b')).toEqual({ runId: run, runState: 'running', node: 'b' });
    expect(await explain(run, `a'; drop table cyclone_runs --`)).not.toHaveProperty('state');
  });

  it('names the open nodes before it, with their states', async () => {
    const graph: TestGraph = { a: [], b: ['a'], c: [], d: ['a', 'b', 'c'] };
    const run = await db.submit(graph);
    await db.flush(await db.claim().then((steps) => steps.filter(({ node }) => node === 'c')));
    expect(await explain(run, 'd')).toMatchObject({ state: 'pending', kind: 'work', attempt: 1, workflow: 'flow' });
    expect(await why(run, 'd')).toEqual([
      {
        code: 'dependencies',
        open: 2,
        total: 3,
        nodes: [
          { node: 'a', state: 'running' },
          { node: 'b', state: 'pending' },
        ],
      },
    ]);
    expect(describeReason((await explain(run, 'd'))!.reasons![0]!)).toBe(
      'It waits for 2 of 3 nodes before it: a (running), b (pending).',
    );
  });

  it('says that nobody alive serves its kind in its queue', async () => {
    const run = await db.submit({ a: { kind: 'mail', queue: 'slow' } });
    await worker('other', { slow: 5 }, ['work']);
    await worker('elsewhere', { fast: 5 }, ['mail']);
    const nobody = {
      code: 'no_worker',
      deadWorkers: 0,
      drainingWorkers: 0,
      otherWorkers: 2,
      lastSeenAt: expect.any(String),
    };
    expect(await why(run, 'a')).toEqual([nobody]);
    expect(await said(run, 'a')).toBe(
      'None of the 2 live worker(s) serves its kind in its queue: start one that registers it.',
    );
    await worker('dead', { slow: 5 }, ['mail']);
    await database.moveClock(120_000);
    expect(await why(run, 'a')).toEqual([{ ...nobody, deadWorkers: 1, otherWorkers: 0 }]);
    expect(await said(run, 'a')).toMatch(
      /No live worker serves .* 1 dead one\(s\) did, the last one seen at \d{4}-.*Z: start one\./,
    );
  });

  it('says that no worker lives and since when, after the only one was killed (F26)', async () => {
    const [run = '', next = ''] = await db.submitMany([{ a: [] }, { a: [] }]);
    await worker('only', { default: 1 }, ['work']);
    await db.claim({ owner: 'only', queues: { default: 1 }, leaseMs: 30_000 });
    const seenAt = await db.value<string>('select cyclone_iso(last_seen_at) from cyclone_workers');
    await database.moveClock(10_000);
    expect(await said(run, 'a')).toMatch(
      new RegExp(`running on worker only since .*, which was last seen at ${seenAt}\\.`),
    );
    await database.moveClock(40_000); // the lease has expired, and the worker was seen less than a minute ago
    expect(await why(run, 'a')).toMatchObject([
      { code: 'lease_expired', liveWorkers: 0, workerSeenAt: seenAt, lastSeenAt: seenAt },
    ]);
    expect(await said(run, 'a')).toMatch(
      new RegExp(
        `; no worker is known to live that could reclaim it \\(the last one was seen at ${seenAt}\\): start one\\.`,
      ),
    );
    expect(await said(next, 'a')).toContain(`All 1 slots`);
    await worker('another', { other: 1 }, ['other']);
    expect(await said(run, 'a')).toContain('the next sweep reclaims it');
    await database.moveClock(200_000);
    expect(await said(run, 'a')).toContain('no worker is known to live');
    expect(await said(next, 'a')).toContain(`1 dead one(s) did, the last one seen at ${seenAt}: start one.`);
    await db.query('delete from cyclone_workers');
    expect(await said(next, 'a')).toBe('No worker lives: start one that registers its kind.');
  });

  it('says that all who serve it are shutting down, and when one that will claim it was seen (F26)', async () => {
    const run = await db.submit({ a: [] });
    await worker('w', { default: 1 }, ['work']);
    expect(await said(run, 'a')).toMatch(/next poll \(one was last seen at \d{4}-.*Z\)\.$/);
    await db.call('cyclone_retire_worker', 'w', false);
    expect(await said(run, 'a')).toBe('All 1 worker(s) that serve its kind in its queue are shutting down: start one.');
  });

  it('says that every slot is taken, what comes before it, and that it is next', async () => {
    await worker('w', { default: 1 }, ['work']);
    const [first, second, third] = await db.submitMany([{ a: [] }, { a: [] }, { a: [] }]);
    expect(await why(first!, 'a')).toMatchObject([{ code: 'due' }]);
    await db.claim({ owner: 'w', queues: { default: 1 } });
    expect(await why(first!, 'a')).toMatchObject([{ code: 'running', worker: 'w', liveWorkers: 1 }]);
    expect(await why(second!, 'a')).toMatchObject([{ code: 'no_free_slot', slots: 1, running: 1 }, { code: 'due' }]);
    expect(await why(third!, 'a')).toEqual([
      { code: 'no_free_slot', slots: 1, running: 1 },
      { code: 'queued', ahead: 1 },
    ]);
  });

  it('tells a delay from a backoff', async () => {
    await worker('w', { default: 1 }, ['work']);
    const delayed = await db.submit({ a: [] }, { delayMs: 60_000 });
    const failed = await db.submit({ a: [] });
    await db.fail(await db.claimOne(), { delayMs: 60_000 });
    expect(await why(delayed, 'a')).toMatchObject([{ code: 'scheduled', at: expect.any(String) }]);
    expect(await why(failed, 'a')).toMatchObject([{ code: 'backoff', error: 'boom' }]);
  });

  it('says that its run is paused', async () => {
    const run = await db.submit({ a: [], b: ['a'] });
    await db.pause(run);
    expect(await why(run, 'a')).toMatchObject([{ code: 'run_paused' }]);
    expect(await why(run, 'b')).toMatchObject([{ code: 'run_paused' }, { code: 'dependencies', open: 1 }]);
  });

  it('tells a lease that has expired, and whether anybody is there to reclaim it', async () => {
    const run = await db.submit({ a: [] });
    await db.claim({ owner: 'gone' });
    await database.moveClock(60_000);
    expect(await why(run, 'a')).toMatchObject([{ code: 'lease_expired', worker: 'gone', liveWorkers: 0 }]);
  });

  it('tells what a waiting node waits for', async () => {
    const run = await db.submit({
      t: { type: 'timer', policy: { waitMs: 60_000 } },
      s: { type: 'signal' },
      c: { type: 'child' },
    });
    const child = await db.submit({ x: [] });
    expect(await why(run, 't')).toMatchObject([{ code: 'timer', due: false, wakeAt: expect.any(String) }]);
    expect(await why(run, 's')).toEqual([{ code: 'signal', due: false }]);
    expect(await why(run, 'c')).toEqual([{ code: 'child', due: false }]);
    await db.query(`update cyclone_runs set parent_run_id = $1, parent_node = 'c' where id = $2`, [run, child]);
    expect(await why(run, 'c')).toEqual([{ code: 'child', due: false, childRunId: child, childState: 'running' }]);
  });

  it('tells how a node ended', async () => {
    const run = await db.submit({ a: [], b: ['a'], c: [] });
    const steps = await db.claim();
    await db.flush(steps.filter(({ node }) => node === 'c'));
    await db.failForGood(steps.find(({ node }) => node === 'a')!);
    expect(await why(run, 'a')).toMatchObject([
      { code: 'discarded', error: 'boom', errorKind: 'permanent', contained: false },
    ]);
    expect(await why(run, 'b')).toMatchObject([{ code: 'cancelled' }]);
    expect(await why(run, 'c')).toMatchObject([{ code: 'completed' }]);
  });

  it('sees a promotion that was missed, and a node that can never start (R24)', async () => {
    const run = await db.submit({ a: [], b: ['a'], c: ['a'] });
    await db.query('set session_replication_role = replica');
    await db.query(`update cyclone_steps set state = 'completed', finished_at = now() where node = 'a'`);
    expect(await why(run, 'b')).toEqual([{ code: 'missed_promotion' }]);
    await db.query(`update cyclone_steps set state = 'cancelled' where node = 'a'`);
    expect(await why(run, 'b')).toMatchObject([
      { code: 'unreachable', nodes: [{ node: 'a', state: 'cancelled' }] },
      { code: 'dependencies' },
    ]);
    await db.query('set session_replication_role = origin');
    await db.query('delete from cyclone_runs');
    await db.query('delete from cyclone_steps');
  });
});
