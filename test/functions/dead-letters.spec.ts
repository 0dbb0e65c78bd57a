import { errorFingerprint } from '#cyclone/model/fingerprint.js';
import { DeadLetterStore, type ExhaustedFilter, type ExhaustedPosition } from '#cyclone/store/dead-letter-store.js';
import { EngineDatabase, type EngineEvent, type EngineSession } from '../support/engine-sql.js';
import { sessionOf } from '../support/session-of.js';

const store = new DeadLetterStore('public');
let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

const HOUR = 3_600_000;

/** A run of one node whose only step is discarded. */
async function dead(
  node: string,
  { kind = 'work', errorKind = 'permanent', error = 'boom', fingerprint = 'f1' } = {},
): Promise<string> {
  const run = await db.submit({ [node]: { kind, maxAttempts: 1 } });
  const step = await db.claimOne({ kinds: [kind] });
  await db.fail(step, { errorKind, error, fingerprint });
  return run;
}

const list = async (filter: ExhaustedFilter = {}, limit = 100, before?: ExhaustedPosition) =>
  (await store.listExhausted(sessionOf(db), filter, limit, before)).map(({ node }) => node);

describe('the list of dead letters (R24)', () => {
  it('has every column that an operator needs', async () => {
    const run = await dead('a', { kind: 'mail', error: 'no route' });
    expect(await store.listExhausted(sessionOf(db), {}, 10)).toEqual([
      {
        runId: run,
        node: 'a',
        kind: 'mail',
        queue: 'default',
        error: 'no route',
        errorKind: 'permanent',
        fingerprint: 'f1',
        attempts: 1,
        maxAttempts: 1,
        discardedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
        contained: false,
        workflow: 'flow',
        runState: 'failed',
        rootRunId: run,
        rootState: 'failed',
      },
    ]);
  });

  it('selects by kind, reason, fingerprint and age; retryable includes timeout, no reason selects all', async () => {
    await dead('old', { kind: 'mail', errorKind: 'retryable' });
    await database.moveClock(2 * HOUR);
    await dead('r', { errorKind: 'retryable', fingerprint: 'f2' });
    await dead('t', { errorKind: 'timeout' });
    await dead('p');
    expect(await list()).toEqual(['p', 't', 'r', 'old']);
    expect(await list({ reason: 'retryable' })).toEqual(['t', 'r', 'old']);
    expect(await list({ reason: 'timeout' })).toEqual(['t']);
    expect(await list({ reason: 'permanent' })).toEqual(['p']);
    expect(await list({ reason: 'deadline' })).toEqual([]);
    expect(await list({ kind: 'mail' })).toEqual(['old']);
    expect(await list({ kind: 'a' })).toEqual([]);
    expect(await list({ sinceMs: HOUR })).toEqual(['p', 't', 'r']);
    expect(await list({ fingerprint: 'f2' })).toEqual(['r']);
    expect(await list({ kind: `x' OR 1=1--` })).toEqual([]);
  });

  it('goes on behind a position, with every step once, also when many were discarded in one moment (S31)', async () => {
    const graph = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`n${i}`, { kind: `k${i % 3}` }]));
    const run = await db.submit(graph, { deadlineMs: 1 });
    await dead('later');
    await database.moveClock(1_000);
    await db.deadlines();
    const seen: string[] = [];
    let before: ExhaustedPosition | undefined;
    for (;;) {
      const page = await store.listExhausted(sessionOf(db), {}, 4, before);
      seen.push(...page.map(({ node }) => node));
      before = page.at(-1);
      if (page.length < 4) break;
    }
    expect(seen).toEqual([...Object.keys(graph).toReversed(), 'later']);
    expect(await list({ reason: 'deadline' }, 2)).toEqual(['n8', 'n7']);
    expect((await db.run(run)).state).toBe('failed');
  });

  it('names contained discards too, but only failed runs are to be retried', async () => {
    const contained = await db.submit({ a: [], b: { after: ['a'], policy: { onDepFailure: 'cancel_branch' } } });
    await db.failForGood(await db.claimOne());
    const failed = await dead('x');
    expect(await list()).toEqual(['x', 'a']);
    expect((await db.run(contained)).state).toBe('completed');
    expect(await store.exhaustedRoots(sessionOf(db), {}, 10)).toEqual({ runIds: [failed], next: null });
  });

  it('maps the dead step of a child run to its root, and counts each root once (R31)', async () => {
    const root = await dead('outer');
    const child = await dead('inner');
    const grandchild = await dead('innermost');
    await db.query('update cyclone_runs set parent_run_id = $1, parent_node = $2 where id = $3', [
      root,
      'outer',
      child,
    ]);
    await db.query('update cyclone_runs set parent_run_id = $1, parent_node = $2 where id = $3', [
      child,
      'inner',
      grandchild,
    ]);
    expect((await store.exhaustedRoots(sessionOf(db), {}, 10)).runIds).toEqual([root]);
    const [step] = await store.listExhausted(sessionOf(db), {}, 1);
    expect(step).toMatchObject({ runId: grandchild, rootRunId: root, rootState: 'failed' });
  });

  it('does not bring back a run that was retried between two pages and failed again', async () => {
    for (const node of ['a', 'b', 'c', 'd']) await dead(node);
    const first = await store.exhaustedRoots(sessionOf(db), {}, 2);
    expect(first.runIds).toHaveLength(2);
    for (const run of first.runIds) {
      await db.retry(run);
      await db.failForGood(await db.claimOne());
    }
    const second = await store.exhaustedRoots(sessionOf(db), {}, 2, first.next!);
    expect(second.runIds).toHaveLength(2);
    expect(new Set([...first.runIds, ...second.runIds]).size).toBe(4);
    expect((await store.exhaustedRoots(sessionOf(db), {}, 2, second.next!)).runIds).toEqual([]);
  });
});

describe('the groups of dead letters', () => {
  it('put together what has one cause, with the newest as the example', async () => {
    await dead('a', { error: 'no 1', fingerprint: 'f' });
    await dead('b', { error: 'no 2', fingerprint: 'f' });
    await dead('c', { kind: 'mail', errorKind: 'timeout', error: 'slow', fingerprint: 'g' });
    const groups = await store.groups(sessionOf(db), {});
    expect(groups).toMatchObject([
      {
        kind: 'work',
        errorKind: 'permanent',
        fingerprint: 'f',
        steps: 2,
        runs: 2,
        capped: false,
        example: { node: 'b', error: 'no 2' },
      },
      { kind: 'mail', errorKind: 'timeout', fingerprint: 'g', steps: 1, example: { node: 'c', error: 'slow' } },
    ]);
    expect(groups[0]!.oldest < groups[0]!.newest).toBe(true);
    expect(await store.groups(sessionOf(db), { kind: 'mail' })).toHaveLength(1);
    expect(await store.groups(sessionOf(db), { kind: 'none' })).toEqual([]);
  });

  it('say when they have more than were counted', async () => {
    for (let i = 0; i < 4; i++) await dead(`n${i}`);
    await dead('m', { kind: 'mail' });
    expect(await db.call('cyclone_dlq_groups', null, null, 3)).toMatchObject([
      { kind: 'work', steps: '3', capped: true, example_node: 'n3' },
      { kind: 'mail', steps: '1', capped: false },
    ]);
  });

  it('know what the engine itself discarded by the fingerprint that the library would give it', async () => {
    const of = (kind: string, errorKind: string, error: string) => errorFingerprint({ kind, errorKind, error });
    await db.submit({ a: { kind: 'ä "x"\n' }, b: { kind: 'ä "x"\n' }, c: ['a'] }, { deadlineMs: 1 });
    await database.moveClock(1_000);
    await db.deadlines();
    await db.submit({ lost: {} });
    await db.submit({ slow: { maxAttempts: 1, policy: { timeoutMs: 5_000 } } });
    await db.claim();
    await database.moveClock(40_000);
    await db.sweep({ maxReclaims: 0 });
    const deadline = 'the deadline of the run has elapsed';
    expect(await store.groups(sessionOf(db), {})).toMatchObject([
      {
        errorKind: 'deadline',
        fingerprint: of('ä "x"\n', 'deadline', deadline),
        steps: 2,
        runs: 1,
        example: { node: 'b' },
      },
      { kind: 'work', errorKind: 'deadline', fingerprint: of('work', 'deadline', deadline), steps: 1 },
      {
        errorKind: 'reclaim_limit',
        fingerprint: of('work', 'reclaim_limit', 'the lease expired again after 7 reclaims'),
      },
      {
        errorKind: 'timeout',
        fingerprint: of('work', 'timeout', 'The execution took longer than its timeout of 1 ms.'),
      },
    ]);
  });

  it('forget what was reopened, and take only what is young enough', async () => {
    const run = await dead('a');
    await database.moveClock(2 * HOUR);
    await dead('b');
    expect((await store.groups(sessionOf(db), { sinceMs: HOUR }))[0]?.steps).toBe(1);
    await db.retry(run);
    const events: EngineEvent[] = await db.claim();
    expect(events).toHaveLength(1);
    expect((await store.groups(sessionOf(db), {}))[0]?.steps).toBe(1);
  });
});
