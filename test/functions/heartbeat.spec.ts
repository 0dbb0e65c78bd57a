import { EngineDatabase, type EngineSession } from '../support/engine-sql.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

/** Milliseconds that the lease of a node lasts from the given moment of the engine's clock on. */
const leaseLeft = async (node: string) =>
  Number(
    await db.value(
      `select round(extract(epoch from lease_expiry - cyclone_now()) * 1000) from cyclone_steps where node = $1`,
      [node],
    ),
  );

describe('a heartbeat', () => {
  it('renews all leases of a process at once and answers nothing when all is well (R18)', async () => {
    await db.submitMany(Array.from({ length: 20 }, (_, i) => ({ [`n${i}`]: [] })));
    const claimed = await db.claim();
    await database.moveClock(20_000);
    expect(await db.heartbeat(claimed)).toEqual([]);
    for (const node of ['n0', 'n19']) {
      expect(await leaseLeft(node)).toBeGreaterThan(29_000);
      expect(await leaseLeft(node)).toBeLessThanOrEqual(30_000);
    }
    await database.moveClock(45_000);
    expect(await db.sweep()).toEqual([]);
  });

  it('never renews beyond the timeout of the execution, and still answers that it is ours (R10, R17)', async () => {
    await db.submit({ a: { policy: { timeoutMs: 40_000 } } });
    const a = await db.claimOne();
    await database.moveClock(20_000);
    expect(await db.heartbeat([a])).toEqual([]);
    expect(await leaseLeft('a')).toBeGreaterThan(15_000);
    expect(await leaseLeft('a')).toBeLessThanOrEqual(20_000);
    await database.moveClock(50_000);
    expect(await db.heartbeat([a])).toEqual([]);
    expect(await leaseLeft('a')).toBeLessThan(-5_000);
    expect((await db.sweep()).map(({ event }) => event)).toEqual(['timed_out']);
  });

  it('says skipped for a row that is locked right now, renews the others and waits for none (C8)', async () => {
    await db.submitMany([{ a: [] }, { b: [] }]);
    const claimed = await db.claim();
    const other = await database.open();
    await other.query('begin');
    await other.query(`select from cyclone_steps where node = 'a' for update`);
    await database.moveClock(20_000);
    expect(await db.heartbeat(claimed)).toMatchObject([{ outcome: 'skipped', node: 'a', generation: 1 }]);
    expect(await leaseLeft('a')).toBeLessThan(11_000);
    expect(await leaseLeft('b')).toBeGreaterThan(29_000);
    await other.query('rollback');
    expect(await db.heartbeat(claimed)).toEqual([]);
  });

  it('says gone for a lease that is no longer ours, for whatever reason (R12, R28)', async () => {
    const runs = await db.submitMany(
      ['completed', 'cancelled', 'reclaimed', 'stolen', 'purged', 'mine'].map((node) => ({ [node]: [] })),
    );
    const claimed = await db.claim();
    const of = (node: string) => claimed.find((step) => step.node === node)!;
    await db.flush([of('completed')]);
    await db.cancel(runs[1]!);
    await db.settle('released', of('reclaimed'));
    await db.claimOne();
    await db.query(`update cyclone_steps set lease_owner = 'thief' where node = 'stolen'`);
    await db.query('with s as (delete from cyclone_steps where run_id = $1) delete from cyclone_runs where id = $1', [
      runs[4],
    ]);
    const missed = await db.heartbeat(claimed);
    expect(missed.map(({ outcome, node }) => `${outcome} ${node}`).toSorted()).toEqual([
      'gone cancelled',
      'gone completed',
      'gone purged',
      'gone reclaimed',
      'gone stolen',
    ]);
    expect(missed.find(({ node }) => node === 'reclaimed')?.generation).toBe(1);
  });

  it('tells two executions of one step in one process apart (R12)', async () => {
    await db.submit({ a: [] });
    const first = await db.claimOne();
    await db.settle('released', first);
    const second = await db.claimOne();
    expect(await db.heartbeat([first, second])).toMatchObject([{ outcome: 'gone', generation: 1 }]);
  });

  it('renews by owner when there is no list: everything of the process, and nothing of others (C8)', async () => {
    await db.submitMany([{ a: [] }, { b: [] }]);
    await db.claim({ queues: { default: 1 } });
    await db.claim({ owner: 'other' });
    await database.moveClock(20_000);
    expect(await db.heartbeat(null)).toEqual([]);
    expect(await leaseLeft('a')).toBeGreaterThan(29_000);
    expect(await leaseLeft('b')).toBeLessThan(11_000);
  });

  it('goes on while the run is locked, as in a long completion transaction (C2)', async () => {
    const run = await db.submit({ a: [] });
    const a = await db.claimOne();
    const other = await database.open();
    await other.query('begin');
    await other.query('select from cyclone_runs where id = $1 for update', [run]);
    await database.moveClock(20_000);
    expect(await db.heartbeat([a])).toEqual([]);
    expect(await leaseLeft('a')).toBeGreaterThan(29_000);
    await other.query('rollback');
  });

  it('does not deadlock with two lanes that complete and claim (C8)', async () => {
    await db.submitMany(Array.from({ length: 60 }, () => ({ a: [], b: ['a'], c: ['b'] })));
    const lanes = [await database.open(), await database.open()];
    const beats = await database.open();
    const open = new Set(lanes);
    const work = lanes.map(async (lane) => {
      let done = await lane.claim({ queues: { default: 20 } });
      while (done.length > 0) {
        const events = await lane.flush(done, { queues: { default: 20 } });
        const again = new Set(
          events.filter(({ event }) => event === 'busy').map(({ run_id: run, node }) => `${run} ${node}`),
        );
        done = [
          ...events.filter(({ event }) => event === 'claimed'),
          ...done.filter(({ run_id: run, node }) => again.has(`${run} ${node}`)),
        ];
      }
      open.delete(lane);
    });
    while (open.size > 0) await beats.heartbeat(null);
    await Promise.all(work);
    expect(await db.query('select state, count(*)::int as n from cyclone_runs group by state')).toEqual([
      { state: 'completed', n: 60 },
    ]);
  });
});
