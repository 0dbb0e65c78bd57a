import { readFile } from 'node:fs/promises';
import { OperationsStore, type PurgeBatch, type PurgeRequest } from '#cyclone/store/operations-store.js';
import { EngineDatabase, told, type EngineSession, type TestNode } from '../support/engine-sql.js';
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

const DAY = 86_400_000;

/** A run of one node, completed. */
async function finished(node: TestNode = {}): Promise<string> {
  const run = await db.submit({ a: node });
  await db.flush([await db.claimOne()]);
  return run;
}
const kept = (ms: number): TestNode => ({ policy: { retentionMs: ms } });

function purge(request: Partial<PurgeRequest> = {}, session = db): Promise<PurgeBatch> {
  return store.purge(sessionOf(session), {
    after: '0',
    olderThanMs: null,
    defaultAgeMs: null,
    limit: 100,
    scan: 1_000,
    dryRun: false,
    note: { actor: null, reason: null },
    ...request,
  });
}
const left = async (): Promise<string[]> =>
  (await db.query<{ id: string }>('select id from cyclone_runs order by id')).map(({ id }) => id);
const rowsLeft = (run: string) =>
  db.value<number>(
    `select ((select count(*) from cyclone_steps where run_id = $1) + (select count(*) from cyclone_deps where run_id = $1)
           + (select count(*) from cyclone_attempts where run_id = $1))::int`,
    [run],
  );

describe('retention (R35)', () => {
  it('purges a run with all that belongs to it once its retention has passed, and not before', async () => {
    const run = await db.submit({ a: kept(DAY), b: { after: ['a'], ...kept(DAY) } });
    await db.fail(await db.claimOne());
    await db.flush(await db.flush([await db.claimOne()], { queues: { default: 1 } }));
    expect((await db.run(run)).state).toBe('completed');
    await database.moveClock(DAY - 60_000);
    expect(await purge()).toMatchObject({ runs: 0, steps: 0, ended: true });
    await database.moveClock(DAY + 60_000);
    expect(await purge()).toMatchObject({ runs: 1, steps: 2, ended: true, blocked: [] });
    expect(await left()).toEqual([]);
    expect(await rowsLeft(run)).toBe(0);
  });

  it('lets the longest retention of its steps decide, and keeps a run for ever that has a step without one', async () => {
    const run = await db.submit({ a: kept(DAY), b: kept(3 * DAY), c: [] });
    await db.flush(await db.claim());
    await database.moveClock(100 * DAY);
    expect((await purge()).runs).toBe(0);
    await database.moveClock(2 * DAY);
    expect((await purge({ defaultAgeMs: DAY })).runs).toBe(0);
    await database.moveClock(4 * DAY);
    expect((await purge({ defaultAgeMs: 5 * DAY })).runs).toBe(0);
    expect(await left()).toEqual([run]);
    expect((await purge({ defaultAgeMs: DAY })).runs).toBe(1);
  });

  it('goes by the age alone when the call names one', async () => {
    await finished(kept(100 * DAY));
    await database.moveClock(2 * DAY);
    expect((await purge({ olderThanMs: 3 * DAY })).runs).toBe(0);
    expect((await purge({ olderThanMs: DAY })).runs).toBe(1);
  });

  it('takes failed and cancelled runs, never running or paused ones', async () => {
    const [failed, cancelled, paused, running] = await db.submitMany([
      { f: [] },
      { c: { kind: 'x' } },
      { p: { kind: 'x' } },
      { r: { kind: 'x' } },
    ]);
    await db.failForGood(await db.claimOne());
    await db.cancel(cancelled!);
    await db.pause(paused!);
    await database.moveClock(DAY);
    expect((await purge({ olderThanMs: 0 })).runs).toBe(2);
    expect(await left()).toEqual([paused, running]);
    expect(failed).toBeDefined();
  });

  it('keeps a child until its parent has completed or is gone, then takes it in the same call (S33)', async () => {
    const parent = await db.submit({ a: [] });
    const step = await db.claimOne();
    const child = await finished();
    await db.query(`update cyclone_runs set parent_run_id = $1, parent_node = 'a' where id = $2`, [parent, child]);
    expect((await purge({ olderThanMs: 0 })).runs).toBe(0);
    await db.failForGood(step);
    await database.moveClock(DAY);
    // The parent has failed: a retry of it may still use the child's result.
    expect((await purge({ olderThanMs: 2 * DAY })).runs).toBe(0);
    await db.query(`update cyclone_runs set finished_at = finished_at - interval '30 days' where id = $1`, [child]);
    expect((await purge({ olderThanMs: 2 * DAY })).runs).toBe(0);
    expect((await purge({ olderThanMs: 0 })).runs).toBe(2);
    expect(await left()).toEqual([]);
  });

  it('takes a child whose parent has completed although the parent stays', async () => {
    const parent = await finished(kept(100 * DAY));
    const child = await finished(kept(DAY));
    await db.query(`update cyclone_runs set parent_run_id = $1, parent_node = 'a' where id = $2`, [parent, child]);
    await database.moveClock(2 * DAY);
    expect((await purge()).runs).toBe(1);
    expect(await left()).toEqual([parent]);
  });
});

describe('a purge', () => {
  it('works in batches that together come to every run, and says when it has reached the end', async () => {
    for (let i = 0; i < 7; i++) await finished();
    let after = '0';
    const runs: number[] = [];
    for (let ended = false; !ended;) {
      const batch: PurgeBatch = await purge({ after, olderThanMs: 0, limit: 3 });
      runs.push(batch.runs);
      after = batch.walkedTo;
      ended = batch.ended;
    }
    expect(runs.reduce((a, b) => a + b)).toBe(7);
    expect(Math.max(...runs)).toBe(3);
    expect(await left()).toEqual([]);
  });

  it('leaves what another purge is at to that one, and waits for nothing', async () => {
    for (let i = 0; i < 5; i++) await finished();
    const other = await database.open();
    await other.query('begin');
    expect(await purge({ olderThanMs: 0, limit: 3 }, other)).toMatchObject({ runs: 3 });
    expect(await purge({ olderThanMs: 0 })).toMatchObject({ runs: 2, ended: true, blocked: [] });
    await other.query('commit');
    expect(await left()).toEqual([]);
  });

  it('only counts when it is dry', async () => {
    const run = await finished();
    expect(await purge({ olderThanMs: 0, dryRun: true })).toMatchObject({ runs: 1, steps: 1, ended: true });
    expect(await left()).toEqual([run]);
  });

  it('never waits for a locked run, and nobody has to wait for it (C2)', async () => {
    const [first, second] = [await finished(), await finished()];
    await db.submit({ work: [] });
    const other = await database.open();
    await other.query('begin');
    await other.query('select from cyclone_runs where id = $1 for no key update', [first]);
    const purger = await database.open();
    await purger.query('begin');
    expect((await purge({ olderThanMs: 0 }, purger)).runs).toBe(1);
    // The purge of the second run is not committed: claims, completions, submits and a sweep go on.
    const step = await db.claimOne();
    expect(told(await db.flush([step]))).toEqual(['run_completed']);
    expect(await db.sweep()).toEqual([]);
    await other.query('rollback');
    await purger.query('commit');
    expect(await left()).not.toContain(second);
    expect(await left()).toContain(first);
  });

  it('finds the run reopened that a retry reached first (S78)', async () => {
    const gates = await Gates.install(database);
    const run = await db.submit({ a: [] });
    await db.failForGood(await db.claimOne());
    const operator = await database.open();
    await gates.shut('run running');
    const retry = await gates.park(operator, operator.retry(run));
    expect((await purge({ olderThanMs: 0 })).runs).toBe(0);
    await gates.open('run running');
    await retry.result;
    expect((await purge({ olderThanMs: 0 })).runs).toBe(0);
    expect(await db.states(run)).toBe('running: a=available');
  });

  it('looks again after it has locked: a run that was reopened in between stays (C2)', async () => {
    const run = await db.submit({ a: [] });
    await db.failForGood(await db.claimOne());
    // The purge computes ages while it reads its candidates; for this age it stops there.
    const original = await readFile('migrations/functions/cyclone_ms.sql', 'utf8');
    await db.client
      .query(`create or replace function cyclone_ms(p_ms bigint) returns interval language plpgsql volatile as $$
      begin
        if p_ms = 4711 then perform pg_advisory_lock_shared(4711); perform pg_advisory_unlock_shared(4711); end if;
        return p_ms * interval '1 millisecond';
      end $$`);
    try {
      await database.moveClock(60_000);
      const [keeper, purger] = [await database.open(), await database.open()];
      const gates = await Gates.install(database);
      await keeper.query('select pg_advisory_lock(4711)');
      const purging = await gates.park(purger, purge({ olderThanMs: 4711 }, purger));
      await db.retry(run);
      await keeper.query('select pg_advisory_unlock(4711)');
      expect(await purging.result).toMatchObject({ runs: 0, ended: true });
      expect(await db.states(run)).toBe('running: a=available');
    } finally {
      await db.client.query(original);
    }
  });

  it('names a run that the application still refers to, and purges the others', async () => {
    const [held, free] = [await finished(), await finished()];
    await db.query('create table orders (run_id bigint references cyclone_runs (id))');
    try {
      await db.query('insert into orders values ($1)', [held]);
      expect(await purge({ olderThanMs: 0 })).toMatchObject({ runs: 1, ended: true, blocked: [held] });
      expect(await left()).toEqual([held]);
      expect(await rowsLeft(held)).toBe(1);
      expect(free).toBeDefined();
    } finally {
      await db.query('drop table orders');
    }
  });

  it('frees the key of submitOnce (R7)', async () => {
    const [first] = await db.submitOnce(['k']);
    await db.flush([await db.claimOne()]);
    await purge({ olderThanMs: 0 });
    const [second] = await db.submitOnce(['k']);
    expect(second).toMatchObject({ outcome: 'created' });
    expect(second?.run_id).not.toBe(first?.run_id);
  });

  it('writes an audit row when it was asked for by somebody and took something', async () => {
    await purge({ olderThanMs: 0, note: { actor: 'ann', reason: 'space' } });
    await finished();
    await purge({ olderThanMs: 0, dryRun: true, note: { actor: 'ann', reason: 'space' } });
    await purge({ olderThanMs: 0, note: { actor: 'ann', reason: 'space' } });
    expect(await db.query('select actor, action, reason, affected from cyclone_audit')).toEqual([
      { actor: 'ann', action: 'purge', reason: 'space', affected: '1' },
    ]);
  });
});

describe('dead workers', () => {
  it('are forgotten when they are old and hold no lease', async () => {
    for (const id of ['old', 'leased', 'young']) {
      await db.call('cyclone_register_worker', id, 'host', 1, '1', '{"default": 1}', ['work']);
    }
    await db.submit({ a: [] });
    const step = await db.claimOne({ owner: 'leased' });
    await database.moveClock(2 * DAY);
    await db.call('cyclone_register_worker', 'young', 'host', 1, '1', '{"default": 1}', ['work']);
    expect(await store.forgetWorkers(sessionOf(db), DAY)).toBe(1);
    expect(await db.query('select id from cyclone_workers order by id')).toEqual([{ id: 'leased' }, { id: 'young' }]);
    await db.flush([step], { owner: 'leased' });
    expect(await store.forgetWorkers(sessionOf(db), DAY)).toBe(1);
  });
});
