import { EngineStore, type ProgressBeat } from '#cyclone/store/engine-store.js';
import { EngineDatabase, type EngineSession, type TestLease } from '../support/engine-sql.js';
import { sessionOf } from '../support/session-of.js';

const store = new EngineStore('public');
let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

type Report = { fraction?: number | null; note?: string | null };

const beat = ({ run_id: runId, node, generation }: TestLease, { fraction = null, note = null }: Report = {}) =>
  ({ runId, node, generation, fraction, note }) satisfies ProgressBeat;
const renew = (beats: ProgressBeat[], session = db, owner = 'me') =>
  store.heartbeatProgress(sessionOf(session), owner, 30_000, beats);
const shown = (run: string) => db.query('select progress, progress_note from cyclone_v_steps where run_id = $1', [run]);

describe('a heartbeat with progress (R18)', () => {
  it('renews every lease and stores what was reported; what was not stays', async () => {
    const [one, two] = await db.submitMany([{ a: [] }, { a: [] }]);
    const [first, second] = await db.claim();
    await database.moveClock(20_000);
    expect(await renew([beat(first!, { fraction: 0.25, note: 'half of the half' }), beat(second!)])).toEqual([]);
    expect(await shown(one!)).toEqual([{ progress: 0.25, progress_note: 'half of the half' }]);
    expect(await shown(two!)).toEqual([{ progress: null, progress_note: null }]);
    await renew([beat(first!, { fraction: 0.5 })]);
    expect(await shown(one!)).toEqual([{ progress: 0.5, progress_note: 'half of the half' }]);
    await database.moveClock(45_000);
    expect(await db.sweep()).toEqual([]);
  });

  it('never renews past the timeout of the step (R10)', async () => {
    const run = await db.submit({ a: { policy: { timeoutMs: 35_000 } } });
    const step = await db.claimOne();
    await database.moveClock(20_000);
    await renew([beat(step)]);
    expect(
      await db.value(
        `select extract(epoch from lease_expiry - started_at)::float8 from cyclone_steps where run_id = $1`,
        [run],
      ),
    ).toBeCloseTo(35);
  });

  it('writes nothing for a lease that is gone or locked, and says which (C8)', async () => {
    const [gone, locked] = await db.submitMany([{ a: [] }, { b: [] }]);
    const claimed = await db.claim();
    const [first, second] = claimed;
    await db.query(`update cyclone_steps set lease_generation = 2 where run_id = $1`, [gone]);
    const other = await database.open();
    await other.query('begin');
    await other.query('select from cyclone_steps where run_id = $1 for no key update', [locked]);
    const missedBeats = await renew(claimed.map((step) => beat(step, { fraction: 1 })));
    expect(missedBeats.toSorted((a, b) => a.node.localeCompare(b.node))).toEqual([
      { outcome: 'gone', runId: gone, node: 'a', generation: first!.generation },
      { outcome: 'skipped', runId: locked, node: 'b', generation: second!.generation },
    ]);
    await other.query('rollback');
    expect(await renew([beat(second!)], db, 'somebody else')).toMatchObject([{ outcome: 'gone' }]);
    expect(await shown(gone!)).toEqual([{ progress: null, progress_note: null }]);
    expect(await shown(locked!)).toEqual([{ progress: null, progress_note: null }]);
  });

  it('begins at nothing when the step is executed again, and keeps the last word of the one that completed it', async () => {
    const run = await db.submit({ a: [] });
    const first = await db.claimOne();
    await renew([beat(first, { fraction: 0.9, note: 'almost' })]);
    await db.fail(first);
    const second = await db.claimOne();
    expect(await shown(run)).toEqual([{ progress: null, progress_note: null }]);
    await renew([beat(second, { note: 'again' })]);
    expect(await shown(run)).toEqual([{ progress: null, progress_note: 'again' }]);
    await renew([beat(second, { fraction: 1 })]);
    await db.flush([second]);
    expect(await shown(run)).toEqual([{ progress: 1, progress_note: 'again' }]);
  });

  it('tells two executions of one step in one beat apart (R12)', async () => {
    await db.submit({ a: [] });
    const first = await db.claimOne();
    await db.fail(first);
    const second = await db.claimOne();
    expect(await renew([beat(first, { fraction: 0.1 }), beat(second, { fraction: 0.2 })])).toMatchObject([
      { outcome: 'gone', generation: 1 },
    ]);
    expect(await shown(second.run_id)).toMatchObject([{ progress: 0.2 }]);
  });
});
