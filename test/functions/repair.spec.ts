import { OperationsStore } from '#cyclone/store/operations-store.js';
import { EngineDatabase, type EngineSession, type TestGraph } from '../support/engine-sql.js';
import { Gates } from '../support/gate.js';
import { sessionOf } from '../support/session-of.js';

const store = new OperationsStore('public');
let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

const CHAIN: TestGraph = { a: [], b: ['a'], c: ['b'] };
const branch = (...after: string[]) => ({ after, policy: { onDepFailure: 'cancel_branch' } });

/** Changes rows behind the back of the engine, and of the guard trigger. */
async function byHand(sql: string, values: unknown[] = []): Promise<void> {
  await db.query('set session_replication_role = replica');
  await db.query(sql, values);
  await db.query('set session_replication_role = origin');
}

/** A run of the graph with its first node completed, though its dependents were never told. */
async function missed(graph: TestGraph = CHAIN): Promise<string> {
  const run = await db.submit(graph);
  await byHand(`update cyclone_steps set state = 'completed', finished_at = now() where run_id = $1 and node = 'a'`, [
    run,
  ]);
  await byHand(`update cyclone_runs set open_steps = open_steps - 1 where id = $1`, [run]);
  return run;
}

const known = async () => (await store.knownStranded(sessionOf(db))).map(({ runId }) => runId);
/** Looks at all runs of a small test, and says what is known then. */
async function check(): Promise<string[]> {
  await db.checkStranded();
  return known();
}

async function repair(run: string): Promise<{ outcome: string; told: string[]; problems: string }> {
  const { outcome, rows, problems } = await store.repairRun(sessionOf(db), run, { actor: null, reason: null });
  return { outcome, told: rows.map(({ event, node }) => `${event} ${node}`.trim()), problems: problems.join('; ') };
}

/** The events of a repair that only tells. */
async function dryRun(run: string, actor: string | null = null, reason: string | null = null): Promise<string[]> {
  return (await db.call('cyclone_repair_run', run, true, actor, reason)).map(({ event }) => event);
}

describe('a stranded run (R24)', () => {
  it('whose promotion was missed is found, told what is wrong with it, promoted, and found no more', async () => {
    const run = await missed();
    expect(await check()).toEqual([run]);
    expect(await dryRun(run)).toEqual(['repaired']);
    expect(await db.states(run)).toBe('running: a=completed b=pending c=pending');
    const { problems, told } = await repair(run);
    expect(problems).toContain('nothing in it is available, running or waiting');
    expect(problems).toContain('pending although everything before it has completed: b');
    expect(told).toEqual(['promoted b']);
    expect(await check()).toEqual([]);
    expect(await repair(run)).toEqual({ outcome: 'sound', told: [], problems: '' });
    await db.flush(await db.flush([await db.claimOne()], { queues: { default: 1 } }));
    expect((await db.run(run)).state).toBe('completed');
  });

  it('with nothing left to do is completed', async () => {
    const run = await db.submit({ a: [] });
    await byHand(`update cyclone_steps set state = 'completed', finished_at = now()`);
    expect(await check()).toEqual([run]);
    expect((await repair(run)).told).toEqual(['run_completed']);
    expect(await db.run(run)).toMatchObject({ state: 'completed', open_steps: 0, finished_at: expect.any(Date) });
  });

  it('whose step was discarded by hand is failed, what is behind it cancelled', async () => {
    const run = await db.submit(CHAIN);
    await byHand(
      `update cyclone_steps set state = 'discarded', error_kind = 'permanent', finished_at = now() where node = 'a'`,
    );
    expect(await check()).toEqual([run]);
    expect((await repair(run)).told).toEqual(['cancelled b', 'cancelled c', 'run_failed']);
    expect(await db.run(run)).toMatchObject({ state: 'failed', uncontained_discards: 1 });
    await db.retry(run);
    expect(await db.states(run)).toBe('running: a=available b=pending c=pending');
  });

  it('that was set to paused steps by hand goes on', async () => {
    const run = await db.submit({ a: [], t: { type: 'timer', policy: { waitMs: 60_000 } } });
    await db.pause(run);
    await byHand(`update cyclone_runs set state = 'running' where id = $1`, [run]);
    expect(await check()).toEqual([run]);
    expect((await repair(run)).told.toSorted()).toEqual(['resumed a', 'resumed t']);
    expect(await db.states(run)).toBe('running: a=available t=waiting_timer');
    expect(await db.run(run)).toMatchObject({ paused_at: null });
  });

  it('is found with wrong counters too, before they strand it', async () => {
    const run = await db.submit({ ...CHAIN, d: branch('a') }, { deadlineMs: 60_000 });
    await byHand(`update cyclone_runs set open_steps = 9, uncontained_discards = 3, deadline_at = null`);
    await byHand(`update cyclone_steps set open_deps = 7 where node = 'c'`);
    await byHand(`update cyclone_steps set dependents = 0 where node = 'a'`);
    expect(await check()).toEqual([]);
    const page = await store.stranded(sessionOf(db), '0', 100, 100);
    expect(page).toMatchObject({ ended: true, runs: [{ runId: run, stranded: false }] });
    const { problems } = await repair(run);
    expect(problems).toContain('open_steps is 9, really 4');
    expect(problems).toContain('uncontained_discards is 3, really 0');
    expect(problems).toContain('wrong number of open dependencies: c');
    expect(problems).toContain('wrong number of dependents: a');
    expect(problems).toContain('its deadline is not set');
    expect(await db.problems()).toEqual([]);
    expect((await store.stranded(sessionOf(db), '0', 100, 100)).runs).toEqual([]);
  });

  it('that the manual statement of the guide made claimable is sound', async () => {
    await db.submit({ a: [] });
    await db.claim();
    await database.moveClock(60_000);
    await db.query(
      `UPDATE cyclone_steps
       SET state = 'available', lease_expiry = NULL, lease_owner = NULL,
           scheduled_at = now()
       WHERE state = 'running' AND lease_expiry < cyclone_now()`,
    );
    expect(await check()).toEqual([]);
    expect((await store.stranded(sessionOf(db), '0', 100, 100)).runs).toEqual([]);
  });

  it('is not one that waits, that is paused, that failed, or that a partial retry left with a discard', async () => {
    const [waiting, paused, partial, delayed] = await db.submitMany([
      { s: { type: 'signal' }, t: ['s'] },
      { p: [], q: ['p'] },
      { a: { kind: 'x' }, b: { kind: 'x' }, c: { after: ['a'], kind: 'x' }, d: { after: ['b'], kind: 'x' } },
      { z: { kind: 'later' } },
    ]);
    await db.pause(paused!);
    const [a, b] = await db.claim({ kinds: ['x'] });
    await db.query(`select cyclone_now()`);
    await db.failForGood(a!);
    expect((await db.run(partial!)).state).toBe('failed');
    expect(b).toBeDefined();
    await db.retry(partial!, 'a');
    expect(await check()).toEqual([]);
    expect((await store.stranded(sessionOf(db), '0', 100, 100)).runs).toEqual([]);
    expect((await repair(paused!)).outcome).toBe('not_running');
    expect((await repair(waiting!)).outcome).toBe('sound');
    expect((await repair(delayed!)).outcome).toBe('sound');
    expect((await repair('999999999999')).outcome).toBe('not_found');
  });
});

describe('the check for stranded runs', () => {
  it('finds nothing while completions promote, whenever it looks', async () => {
    const gates = await Gates.install(database);
    const run = await db.submit(CHAIN);
    const step = await db.claimOne();
    const worker = await database.open();
    await gates.shut('step b available');
    const flush = await gates.park(worker, worker.flush([step]));
    expect(await check()).toEqual([]);
    expect((await repair(run)).outcome).toBe('busy');
    await gates.open('step b available');
    await flush.result;
    expect(await check()).toEqual([]);
  });

  it('finds one stranded run among thousands, and never moves its mark over a run that it has not examined (F7)', async () => {
    for (let i = 0; i < 12; i++) await db.submitMany(Array.from({ length: 100 }, () => ({ x: [] })));
    const hidden = await missed({ a: { kind: 'lost' }, b: { after: ['a'], kind: 'lost' } });
    for (let i = 0; i < 12; i++) await db.submitMany(Array.from({ length: 100 }, () => ({ x: [] })));
    const mark = () => db.value<string>(`select run_id from cyclone_marks where name = 'stranded'`);
    let pieces = 0;
    for (let at = 0n; (await known()).length === 0; pieces++) {
      await db.checkStranded(100);
      const passed = BigInt(await mark());
      const examined = await db.value<number>('select count(*)::int from cyclone_runs where id > $1 and id <= $2', [
        String(at),
        String(passed),
      ]);
      expect(examined).toBeLessThanOrEqual(100); // a piece that was begun is finished
      expect(passed >= BigInt(hidden)).toBe((await known()).length > 0);
      at = passed;
    }
    expect(pieces).toBeLessThanOrEqual(13);
    await repair(hidden);
    expect(await known()).toEqual([]);
    await db.query('truncate cyclone_runs, cyclone_steps, cyclone_deps, cyclone_stranded_runs');
  });

  it('finds all of many stranded runs that lie together at the end, round after round (F7)', async () => {
    const runs = await db.submitMany(Array.from({ length: 180 }, () => ({ x: [] })));
    const lost = runs.slice(50);
    await byHand(`update cyclone_steps set state = 'completed', finished_at = now() where run_id = any($1)`, [lost]);
    for (let piece = 0; piece < 3; piece++) await db.checkStranded();
    expect(await known()).toEqual(lost);
    await db.query('truncate cyclone_runs, cyclone_steps, cyclone_stranded_runs');
  });

  it('looks at one piece a second and begins a round once a minute, however many workers ask (F7)', async () => {
    const run = await missed();
    const look = (seconds: number) =>
      db.query(`select cyclone_check_stranded(cyclone_now() + $1 * interval '1 s', 10000)`, [seconds]);
    await look(0);
    expect(await known()).toEqual([run]);
    await db.query('delete from cyclone_stranded_runs');
    for (const seconds of [1, 30, 55]) await look(seconds);
    expect(await known()).toEqual([]);
    await look(61);
    expect(await known()).toEqual([run]);
    await repair(run);
    await db.submitMany(Array.from({ length: 300 }, () => ({ x: [] })));
    await db.checkStranded(1);
    const mark = () => db.query(`select run_id from cyclone_marks where name = 'stranded'`);
    const first = await mark();
    await look(0);
    expect(await mark()).toEqual(first);
    await look(2);
    expect(await mark()).not.toEqual(first);
    await db.query('truncate cyclone_runs, cyclone_steps, cyclone_deps');
  });

  it('forgets what was mended by hand, of however many that it remembers (F7)', async () => {
    await db.submitMany(Array.from({ length: 150 }, () => ({ x: [] })));
    await byHand(`update cyclone_steps set state = 'completed', finished_at = now()`);
    for (let piece = 0; piece < 2; piece++) await db.checkStranded();
    expect(await known()).toHaveLength(150);
    await byHand(`update cyclone_runs set state = 'completed', finished_at = now(), open_steps = 0`);
    expect(await known()).toEqual([]);
    for (let piece = 0; piece < 2; piece++) await db.checkStranded();
    expect(await db.query('select * from cyclone_stranded_runs')).toEqual([]);
    await db.query('truncate cyclone_runs, cyclone_steps');
  });

  it('is read in a read-only session too', async () => {
    const run = await missed();
    await check();
    await db.query('begin read only');
    expect(await known()).toEqual([run]);
    await db.query('commit');
    await repair(run);
  });

  it('is paged by position, limited in what it finds', async () => {
    const runs = [await missed(), await missed(), await missed()];
    const first = await store.stranded(sessionOf(db), '0', 100, 2);
    expect(first).toMatchObject({ runs: [{ runId: runs[0] }, { runId: runs[1] }], walkedTo: runs[1], ended: false });
    const second = await store.stranded(sessionOf(db), first.walkedTo, 100, 2);
    expect(second).toMatchObject({ runs: [{ runId: runs[2] }], ended: true });
    for (const run of runs) await repair(run);
  });
});

describe('a repair', () => {
  it('of one run never waits for another transaction', async () => {
    const run = await missed();
    const other = await database.open();
    await other.query('begin');
    await other.query('select from cyclone_runs where id = $1 for no key update', [run]);
    expect((await repair(run)).outcome).toBe('busy');
    await other.query('rollback');
    expect((await repair(run)).outcome).toBe('repaired');
  });

  it('leaves an audit row when somebody asked for it', async () => {
    const run = await missed();
    await dryRun(run, 'ann', 'look');
    await store.repairRun(sessionOf(db), run, { actor: 'ann', reason: 'stuck' });
    expect(await db.query('select actor, action, run_id, reason, affected from cyclone_audit')).toEqual([
      { actor: 'ann', action: 'repair', run_id: run, reason: 'stuck', affected: '1' },
    ]);
  });

  it('ends a large graph in one go, without a step for each edge', async () => {
    const layer = Array.from({ length: 60 }, (_, i) => `m${i}`);
    const graph: TestGraph = { a: [] };
    for (const node of layer) graph[node] = ['a'];
    for (const node of layer) graph[`z${node}`] = layer;
    const run = await missed(graph);
    expect((await repair(run)).told).toHaveLength(60);
    expect(await check()).toEqual([]);
  });
});
