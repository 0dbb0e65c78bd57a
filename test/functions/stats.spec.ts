import { InspectionStore } from '#cyclone/store/inspection-store.js';
import { OperationsStore } from '#cyclone/store/operations-store.js';
import { readStats, type Stats } from '#cyclone/store/stats.js';
import { EngineDatabase, type EngineSession } from '../support/engine-sql.js';
import { sessionOf } from '../support/session-of.js';

const inspection = new InspectionStore('public');
const operations = new OperationsStore('public');
let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

const stats = (): Promise<Stats> => readStats(inspection, operations, sessionOf(db));
const worker = (id: string, kinds = ['work']) =>
  db.call('cyclone_register_worker', id, 'host', 1, '1.2.3', '{"default": 5}', kinds);
const exactly = (count: number) => ({ count, capped: false });

describe('stats (R34)', () => {
  it('are all zero in an empty database', async () => {
    const { runs, steps, ...rest } = await stats();
    expect(Object.values(runs)).toEqual(Array.from({ length: 5 }, () => exactly(0)));
    expect(Object.values(steps)).toEqual(Array.from({ length: 10 }, () => exactly(0)));
    expect(rest).toEqual({
      queues: [],
      kinds: [],
      oldestAvailableAgeMs: null,
      workers: { live: 0, draining: 0, dead: 0 },
      health: { strandedRuns: 0, expiredLeases: 0, unserved: [], workerProblems: [] },
    });
  });

  it('count runs and steps by state, queues and kinds', async () => {
    await worker('w');
    const [, , cancelled, paused] = await db.submitMany([
      { a: [] },
      { a: [], b: ['a'] },
      { a: [], b: ['a'] },
      { a: [], b: ['a'] },
    ]);
    const claimed = await db.claim({ queues: { default: 2 } });
    await db.flush([claimed[0]!]);
    await db.failForGood(claimed[1]!);
    await db.cancel(cancelled!);
    await db.pause(paused!);
    await db.submit({ x: { kind: 'mail', queue: 'slow' }, y: ['x'], s: { type: 'signal' } });
    await db.submit({ later: [] }, { delayMs: 60_000 });
    const { runs, steps, queues, kinds } = await stats();
    expect(runs).toEqual({
      running: exactly(2),
      paused: exactly(1),
      completed: exactly(1),
      failed: exactly(1),
      cancelled: exactly(1),
    });
    expect(steps).toEqual({
      pending: exactly(2),
      available: exactly(2),
      running: exactly(0),
      waiting_timer: exactly(0),
      waiting_signal: exactly(1),
      waiting_child: exactly(0),
      paused: exactly(1),
      completed: exactly(1),
      discarded: exactly(1),
      cancelled: exactly(3),
    });
    expect(queues).toMatchObject([
      { name: 'default', pending: 2, available: 1, due: 0, waiting: 1, paused: 1, oldestAvailableAgeMs: null },
      { name: 'slow', pending: 0, available: 1, due: 1, oldestAvailableAgeMs: expect.any(Number) },
    ]);
    expect(kinds.map(({ name, available }) => [name, available])).toEqual([
      ['mail', 1],
      ['work', 1],
    ]);
  });

  it('tell for how long the oldest due step has been waiting', async () => {
    await db.submit({ a: [] });
    await database.moveClock(60_000);
    await db.submit({ a: [] });
    const { oldestAvailableAgeMs, kinds } = await stats();
    expect(oldestAvailableAgeMs).toBeGreaterThanOrEqual(60_000);
    expect(oldestAvailableAgeMs).toBeLessThan(90_000);
    expect(kinds[0]?.oldestAvailableAgeMs).toBe(oldestAvailableAgeMs);
  });

  it('count leases that have expired, stranded runs and work that nobody serves', async () => {
    await worker('w', ['other']);
    await db.submit({ a: [] });
    await db.claim();
    await database.moveClock(40_000);
    await db.submit({ b: { kind: 'mail' } });
    await db.submit({ c: { kind: 'other' } });
    const run = await db.submit({ x: { kind: 'other' } });
    await db.query('set session_replication_role = replica');
    await db.query(`update cyclone_steps set state = 'completed', finished_at = now() where run_id = $1`, [run]);
    await db.query('set session_replication_role = origin');
    await db.checkStranded();
    const { health, workers } = await stats();
    expect(health).toMatchObject({
      strandedRuns: 1,
      expiredLeases: 1,
      unserved: [{ queue: 'default', kind: 'mail', due: 1, oldest: expect.any(String) }],
    });
    expect(workers).toEqual({ live: 1, draining: 0, dead: 0 });
    await operations.repairRun(sessionOf(db), run, { actor: null, reason: null });
  });

  it('cap what is over, and stay exact for what is open', async () => {
    await db.submitMany(Array.from({ length: 30 }, () => ({ a: [] })));
    await db.flush(await db.claim({ queues: { default: 15 } }));
    const runs = await db.claim({ queues: { default: 10 } });
    await db.fail(runs, { errorKind: 'permanent' });
    const counts = await inspection.stateCounts(sessionOf(db), 8);
    const of = (entity: string, state: string) => {
      const row = counts.find((count) => count.entity === entity && count.state === state);
      return [row?.count, row?.capped];
    };
    expect(of('run', 'completed')).toEqual([8, true]);
    expect(of('run', 'failed')).toEqual([8, true]);
    expect(of('run', 'running')).toEqual([5, false]);
    expect(of('step', 'completed')).toEqual([8, true]);
    expect(of('step', 'discarded')).toEqual([8, true]);
    expect((await inspection.stateCounts(sessionOf(db), 15)).every(({ capped }) => !capped)).toBe(true);
  });
});

describe('the known workers', () => {
  it('are idle, busy, draining or dead', async () => {
    for (const id of ['busy', 'dead', 'draining', 'idle']) await worker(id);
    await db.call('cyclone_retire_worker', 'draining', false);
    await db.submitMany([{ a: [] }, { a: [] }]);
    await db.claim({ owner: 'busy' });
    await db.query(
      `update cyclone_workers set last_seen_at = last_seen_at - interval '61 s', started_at = started_at - interval '1 h' where id = 'dead'`,
    );
    const workers = await inspection.workers(sessionOf(db));
    expect(workers.map(({ id, status, running }) => [id, status, running])).toEqual([
      ['dead', 'dead', 0],
      ['busy', 'busy', 2],
      ['draining', 'draining', 0],
      ['idle', 'idle', 0],
    ]);
    expect(workers[1]).toMatchObject({
      host: 'host',
      pid: 1,
      version: '1.2.3',
      queues: { default: 5 },
      kinds: ['work'],
      draining: false,
      lastSeenAt: expect.stringMatching(/\.\d{6}Z$/),
    });
  });

  it('that drain or are dead serve nothing', async () => {
    await worker('w');
    await db.submitMany([{ a: [] }, { b: { kind: 'mail' } }, { c: { queue: 'slow' } }]);
    const unserved = async () =>
      (await inspection.unserved(sessionOf(db))).map(({ queue, kind }) => `${queue}/${kind}`);
    expect(await unserved()).toEqual(['default/mail', 'slow/work']);
    await db.call('cyclone_retire_worker', 'w', false);
    expect(await unserved()).toEqual(['default/mail', 'default/work', 'slow/work']);
  });
});
