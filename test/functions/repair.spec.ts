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

const check = async () => (await store.checkStranded(sessionOf(db), 100)).map(({ runId }) => runId);

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

  it('goes round all runs in small pieces, and remembers what it found until it is mended', async () => {
    await db.submitMany(Array.from({ length: 10 }, () => ({ x: [] })));
    const hidden = await db.submit({ a: { kind: 'lost' } });
    await byHand(`update cyclone_steps set state = 'completed', finished_at = now() where node = 'a'`);
    await db.submitMany(Array.from({ length: 30 }, () => ({ x: [] })));
    await db.flush(await db.claim());
    const small = async () => (await store.checkStranded(sessionOf(db), 3)).map(({ runId }) => runId);
    let rounds = 0;
    while ((await small()).length === 0 && rounds < 20) rounds++;
    expect(rounds).toBeLessThan(20);
    expect(await small()).toEqual([hidden]);
    expect(await small()).toEqual([hidden]);
    await repair(hidden);
    expect(await small()).toEqual([]);
    expect(await db.query('select * from cyclone_stranded_runs')).toEqual([]);
  });

  it('looks, but remembers nothing, in a read-only session', async () => {
    const run = await missed();
    await db.query('begin read only');
    expect(await check()).toEqual([run]);
    await db.query('commit');
    expect(await db.query('select * from cyclone_stranded_runs')).toEqual([]);
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
