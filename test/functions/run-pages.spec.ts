import { InspectionStore, type RunFilter } from '#cyclone/store/inspection-store.js';
import { EngineDatabase, type EngineSession } from '../support/engine-sql.js';
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

const HOUR = 3_600_000;

/** All runs that match, read page by page. */
async function read(
  filter: RunFilter = {},
  { limit = 3, scan = 1_000, direction = 'desc' as 'desc' | 'asc' } = {},
): Promise<string[]> {
  const found: string[] = [];
  let after: string | undefined;
  for (let pages = 0; pages < 200; pages++) {
    const page = await store.runPage(sessionOf(db), filter, {
      direction,
      limit,
      scan,
      ...(after === undefined ? {} : { after }),
    });
    expect(page.runs.length).toBeLessThanOrEqual(limit);
    found.push(...page.runs.map(({ id }) => id));
    if (page.next === null) return found;
    after = page.next;
  }
  throw new Error('The pages do not end.');
}

/** Five runs in every state, and one with tags, as ids by name. */
async function zoo(): Promise<Record<string, string>> {
  const [completed, failed, cancelled, paused] = await db.submitMany([{ a: [] }, { a: [] }, { a: [] }, { a: [] }], {
    workflow: 'orders',
  });
  const steps = await db.claim();
  await db.flush([steps[0]!]);
  await db.failForGood(steps[1]!);
  await db.cancel(cancelled!);
  await db.pause(paused!);
  const running = await db.submit({ a: [] }, { workflow: 'mails', tags: { tenant: 'acme', tier: 'gold' } });
  return { completed: completed!, failed: failed!, cancelled: cancelled!, paused: paused!, running };
}

describe('a page of runs', () => {
  it('is ordered by id in either direction, every run once, also when thousands were created in one moment (S31)', async () => {
    const runs = await db.submitMany(Array.from({ length: 1_000 }, () => ({ a: [] })));
    expect(await read({}, { limit: 64 })).toEqual(runs.toReversed());
    expect(await read({}, { limit: 64, direction: 'asc' })).toEqual(runs);
    expect(await read({}, { limit: 1_000 })).toHaveLength(1_000);
  });

  it('shows a run with every column, its id as a string and times to the microsecond (S31, S62)', async () => {
    const id = await db.submit({ a: [] }, { deadlineMs: 60_000, tags: { t: 'x' } });
    const big = '9007199254740993';
    await db.query('update cyclone_runs set id = $1 where id = $2', [big, id]);
    await db.query('update cyclone_steps set run_id = $1 where run_id = $2', [big, id]);
    const page = await store.runPage(sessionOf(db), {}, { direction: 'desc', limit: 5, scan: 100 });
    const micros = expect.stringMatching(/\.\d{6}Z$/);
    expect(page).toEqual({
      next: null,
      runs: [
        {
          id: big,
          workflow: 'flow',
          state: 'running',
          openSteps: 1,
          resultNode: null,
          onceKey: null,
          parentRunId: null,
          parentNode: null,
          tags: { t: 'x' },
          createdAt: micros,
          startsAt: micros,
          deadlineAt: micros,
          pausedAt: null,
          failedAt: null,
          cancelledAt: null,
          finishedAt: null,
          cancelReason: null,
        },
      ],
    });
    expect((await read({ states: ['running'] }))[0]).toBe(big);
  });

  it.each(['completed', 'failed', 'cancelled', 'paused', 'running'] as const)('filters by state: %s', async (state) => {
    const runs = await zoo();
    expect(await read({ states: [state] })).toEqual([runs[state]]);
  });

  it('filters by several states, workflow, tags, and all of it together', async () => {
    const { completed, failed, cancelled, paused, running } = await zoo();
    expect(await read({ states: ['failed', 'running'] })).toEqual([running, failed]);
    expect(await read({ states: ['completed', 'paused'] })).toEqual([paused, completed]);
    expect(await read({ workflows: ['orders'] })).toEqual([paused, cancelled, failed, completed]);
    expect(await read({ workflows: ['orders', 'mails'] })).toHaveLength(5);
    expect(await read({ tags: { tenant: 'acme' } })).toEqual([running]);
    expect(await read({ tags: { tenant: 'acme', tier: 'silver' } })).toEqual([]);
    expect(await read({ tags: { tenant: 'acme' }, states: ['failed'] })).toEqual([]);
    expect(await read({ tags: { tenant: 'acme' }, workflows: ['mails'], states: ['running'] })).toEqual([running]);
    expect(await read({ workflows: [`x' OR 1=1--`] })).toEqual([]);
    expect(await read({ states: [] })).toEqual([]);
  });

  it('filters by the key of submitOnce, in whichever workflow, and by the parent', async () => {
    const [one] = await db.submitOnce(['k'], { a: [] }, { workflow: 'first' });
    const [two] = await db.submitOnce(['k'], { a: [] }, { workflow: 'second' });
    await db.submitOnce(['other'], { a: [] }, { workflow: 'first' });
    await db.query(`update cyclone_runs set parent_run_id = $1, parent_node = 'a' where id = $2`, [
      one!.run_id,
      two!.run_id,
    ]);
    expect(await read({ onceKey: 'k' })).toEqual([two!.run_id, one!.run_id]);
    expect(await read({ onceKey: 'k', workflows: ['first'] })).toEqual([one!.run_id]);
    expect(await read({ onceKey: 'none' })).toEqual([]);
    expect(await read({ parent: one!.run_id! })).toEqual([two!.run_id]);
    expect(await read({ parent: two!.run_id! })).toEqual([]);
  });

  it('filters by the time of creation, from inclusive to exclusive', async () => {
    const first = await db.submit({ a: [] });
    await database.moveClock(HOUR);
    const second = await db.submit({ a: [] });
    const at = await db.value<string>('select cyclone_iso(created_at) from cyclone_runs where id = $1', [second]);
    expect(await read({ createdFrom: at })).toEqual([second]);
    expect(await read({ createdTo: at })).toEqual([first]);
    expect(await read({ createdFrom: at, createdTo: at })).toEqual([]);
  });

  it('may be short when it has looked at enough runs, and goes on from there', async () => {
    const { failed, completed } = await zoo();
    await db.submitMany(Array.from({ length: 100 }, () => ({ x: { kind: 'x' } })));
    const page = await store.runPage(
      sessionOf(db),
      { workflows: ['orders'], states: ['completed', 'failed'] },
      { direction: 'desc', limit: 3, scan: 20 },
    );
    expect(page.runs).toEqual([]);
    expect(page.next).not.toBeNull();
    expect(await read({ workflows: ['orders'], states: ['completed', 'failed'] }, { scan: 20 })).toEqual([
      failed,
      completed,
    ]);
  });

  it('says how far it came, for whoever calls the function itself', async () => {
    const runs = await db.submitMany(Array.from({ length: 5 }, () => ({ a: [] })));
    const call = (limit: number, after: string | null) => db.call('cyclone_run_ids', '{}', after, false, limit, 100);
    const row = { id: null, walked_to: null, ended: false };
    expect(await call(2, null)).toEqual([
      { ...row, id: runs[0] },
      { ...row, id: runs[1] },
      { ...row, walked_to: runs[1] },
    ]);
    expect((await call(9, runs[3]!)).at(-1)).toEqual({ id: null, walked_to: runs[4], ended: true });
  });

  it('finds the runs of a time in a large table by bisection', async () => {
    await db.query('set session_replication_role = replica');
    await db.query(
      `insert into cyclone_runs (id, workflow, state, open_steps, created_at, starts_at, finished_at)
       overriding system value
       select 1000000 + 1000 * g, 'old', 'completed', 0, t, t, t
         from generate_series(1, 1000) g cross join lateral (select now() - interval '1000 hours' + g * interval '1 hour' as t) x`,
    );
    await db.query('set session_replication_role = origin');
    const at = (hours: number) => new Date(Date.now() - hours * HOUR).toISOString();
    const ids = await read({ createdFrom: at(500.5), createdTo: at(490.5) }, { scan: 20, limit: 5 });
    expect(ids).toHaveLength(10);
    expect(ids[0]).toBe(String(1_000_000 + 1000 * 509));
    const id = await db.value<string>(`select cyclone_run_id_at(now() - interval '500.5 hours')`);
    expect(id).toBe(String(1_000_000 + 1000 * 500 - 999));
    expect(await db.value(`select cyclone_run_id_at(now())`)).toBe(String(1_000_000 + 1000 * 1000 + 1));
  });

  it('counts up to a cap', async () => {
    await db.submitMany(Array.from({ length: 12 }, () => ({ a: [] })));
    const count = (filter: RunFilter, cap: number, scan = 1_000) => store.countRuns(sessionOf(db), filter, cap, scan);
    expect(await count({}, 12)).toEqual({ count: 12, capped: false });
    expect(await count({}, 11)).toEqual({ count: 11, capped: true });
    expect(await count({ states: ['failed'] }, 10)).toEqual({ count: 0, capped: false });
    expect(await count({ workflows: ['none'] }, 10, 5)).toEqual({ count: 0, capped: true });
  });
});

describe('a page of steps', () => {
  it('is ordered by node, filtered by state and fan-out node, and leaves the payloads out', async () => {
    const run = await db.submit({ a: { input: { secret: 1 } }, b: ['a'], c: [], 'd[0]': {}, 'd[1]': {} });
    await db.query(`update cyclone_steps set parent_node = 'd' where node like 'd[%'`);
    const page = async (request: object) =>
      (await store.stepPage(sessionOf(db), run, { limit: 10, payloads: false, ...request })).map(({ node }) => node);
    expect(await page({})).toEqual(['a', 'b', 'c', 'd[0]', 'd[1]']);
    expect(await page({ limit: 2 })).toEqual(['a', 'b']);
    expect(await page({ limit: 2, after: 'b' })).toEqual(['c', 'd[0]']);
    expect(await page({ states: ['pending'] })).toEqual(['b']);
    expect(await page({ parentNode: 'd' })).toEqual(['d[0]', 'd[1]']);
    const [bare] = await store.stepPage(sessionOf(db), run, { limit: 1, payloads: false });
    expect(bare).toMatchObject({ run_id: run, node: 'a', state: 'available', progress: null });
    expect(bare).not.toHaveProperty('input');
    const [full] = await store.stepPage(sessionOf(db), run, { limit: 1, payloads: true });
    expect(full).toMatchObject({ run_id: run, input: { secret: 1 }, output: null });
  });
});
