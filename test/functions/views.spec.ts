import { EngineDatabase, type EngineSession } from '../support/engine-sql.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

describe('the views (R32)', () => {
  it('show every run and step, under the names of the specification', async () => {
    const run = await db.submit(
      { a: { input: { x: 1 } }, b: ['a'] },
      { tags: { t: '1' }, deadlineMs: 60_000, resultNode: 'b' },
    );
    await db.flush([{ ...(await db.claimOne()), output: [1] }]);
    const [seen] = await db.query('select * from cyclone_v_runs');
    expect(seen).toMatchObject({
      id: run,
      workflow: 'flow',
      state: 'running',
      result_node: 'b',
      tags: { t: '1' },
      deadline_at: expect.any(Date),
      once_key: null,
      parent_run_id: null,
      parent_node: null,
      cancel_reason: null,
    });
    const steps = await db.query('select * from cyclone_v_steps order by node');
    expect(steps).toMatchObject([
      {
        run_id: run,
        node: 'a',
        node_type: 'step',
        kind: 'work',
        state: 'completed',
        input: { x: 1 },
        output: [1],
        lease_expired: false,
      },
      { run_id: run, node: 'b', state: 'available', available_at: expect.any(Date), lease_expired: false },
    ]);
  });

  it('tell a lease that has expired', async () => {
    await db.submitMany([{ a: [] }, { b: [] }]);
    await db.claim({ leaseMs: 30_000 });
    expect(await db.query('SELECT * FROM cyclone_v_steps WHERE lease_expired')).toEqual([]);
    await db.query(`update cyclone_steps set lease_expiry = now() - interval '1 s' where node = 'a'`);
    expect(await db.query('SELECT * FROM cyclone_v_steps WHERE lease_expired')).toMatchObject([
      { node: 'a', state: 'running' },
    ]);
  });

  it('count the open steps of each kind, and the age of the oldest that is due', async () => {
    const graph = {
      a: { kind: 'x' },
      b: { kind: 'x', after: ['a'] },
      c: { kind: 'y', type: 'timer', policy: { waitMs: 60_000 } },
      d: { kind: 'y', type: 'signal' },
      e: { kind: 'y', type: 'child' },
    };
    await db.submit(graph);
    await db.submit({ later: { kind: 'x' } }, { delayMs: 3_600_000 });
    await db.submit({ f: { kind: 'z' } });
    await db.claim({ kinds: ['z'] });
    await db.pause(await db.submit({ g: { kind: 'z' } }));
    await db.cancel(await db.submit({ h: { kind: 'gone' } }));
    await db.query(
      `update cyclone_steps set scheduled_at = now() - interval '2 h', available_at = now() - interval '90 s' where node = 'a'`,
    );
    const kinds = await db.query('select * from cyclone_v_kinds order by kind');
    expect(kinds).toMatchObject([
      { kind: 'x', pending: '1', available: '2', running: '0', waiting: '0', paused: '0' },
      { kind: 'y', pending: '0', available: '0', running: '0', waiting: '3', paused: '0', oldest_available_age: null },
      { kind: 'z', pending: '0', available: '0', running: '1', waiting: '0', paused: '1', oldest_available_age: null },
    ]);
    expect(
      await db.value(`select oldest_available_age between '89 s' and '120 s' from cyclone_v_kinds where kind = 'x'`),
    ).toBe(true);
  });

  it('list the dead letters by kind and reason', async () => {
    for (const [node, errorKind] of [
      ['a', 'permanent'],
      ['b', 'permanent'],
      ['c', 'timeout'],
    ] as const) {
      await db.submit({ [node]: { maxAttempts: 1 } });
      await db.fail(await db.claimOne(), { errorKind });
    }
    expect(await db.query('select * from cyclone_v_dlq order by error_kind')).toMatchObject([
      {
        kind: 'work',
        error_kind: 'permanent',
        steps: '2',
        runs: '2',
        oldest: expect.any(Date),
        newest: expect.any(Date),
      },
      { kind: 'work', error_kind: 'timeout', steps: '1', runs: '1' },
    ]);
  });

  it('name every migration', async () => {
    const versions = await db.query('SELECT * FROM cyclone_schema_version');
    expect(versions).toMatchObject([
      { version: 1, name: 'tables', applied_at: expect.any(Date) },
      { version: 2, name: 'views' },
    ]);
  });
});

describe('the statements of the operations manual work as written (R32)', () => {
  it('reclaim a stuck step by hand', async () => {
    const run = await db.submit({ a: [] });
    const dead = await db.claimOne();
    const manual = `UPDATE cyclone_steps
      SET state = 'available', lease_expiry = NULL, lease_owner = NULL,
          scheduled_at = now()
      WHERE state = 'running' AND lease_expiry < now()
        AND run_id = $1 AND node = $2`;
    expect((await db.client.query(manual, [run, 'a'])).rowCount).toBe(0);
    await db.query(`update cyclone_steps set lease_expiry = now() - interval '1 s'`);
    expect((await db.client.query(manual, [run, 'a'])).rowCount).toBe(1);
    const again = await db.claimOne();
    expect(again).toMatchObject({ generation: 2, attempt: 1 });
    expect((await db.flush([dead])).map(({ event }) => event)).toEqual(['lease_lost']);
    expect((await db.flush([again])).map(({ event }) => event)).toEqual(['run_completed']);
  });

  it('find panics, crash loops and discarded nodes', async () => {
    const run = await db.submit({ a: { maxAttempts: 1 }, b: [] });
    const claimed = await db.claim();
    await database.moveClock(60_000);
    await db.sweep();
    const again = (await db.claim()).find(({ node }) => node === 'a');
    await db.fail(again ?? claimed[0]!, { error: 'handler panicked: x', stack: 'at x' });
    expect(
      await db.query(
        `SELECT node, kind, error, panic_stack
         FROM cyclone_v_steps
         WHERE run_id = $1 AND panic_stack IS NOT NULL`,
        [run],
      ),
    ).toEqual([{ node: 'a', kind: 'work', error: 'handler panicked: x', panic_stack: 'at x' }]);
    expect(
      await db.query(
        `SELECT run_id, node, kind, reclaims, attempt, lease_expired
         FROM cyclone_v_steps
         WHERE reclaims > 0
         ORDER BY reclaims DESC
         LIMIT 20`,
      ),
    ).toHaveLength(2);
    expect(
      await db.query(
        `SELECT node, kind, error, attempt, max_attempts
         FROM cyclone_steps
         WHERE run_id = $1 AND state = 'discarded'`,
        [run],
      ),
    ).toEqual([{ node: 'a', kind: 'work', error: 'handler panicked: x', attempt: 1, max_attempts: 1 }]);
  });
});

describe('run_has_active_steps', () => {
  it('is exact, whatever the counters say', async () => {
    const run = await db.submit({ a: [], b: ['a'] });
    expect(await db.value('select run_has_active_steps($1)', [run])).toBe(true);
    await db.cancel(run);
    expect(await db.value('select run_has_active_steps($1)', [run])).toBe(false);
  });
});

describe('promote_ready_steps', () => {
  it('recounts from the edges and trusts no counter (R24)', async () => {
    const run = await db.submit({ a: [], b: ['a'], c: ['a', 'x'], x: { kind: 'unserved' } });
    await db.claimOne();
    // What an engine with a bug could leave behind.
    await db.query(
      `update cyclone_steps set state = 'completed', lease_owner = null, lease_expiry = null, finished_at = now() where node = 'a'`,
    );
    await db.query(`update cyclone_steps set open_deps = 7 where node in ('b', 'c')`);
    await db.query('update cyclone_runs set open_steps = 3');
    const events = await db.query<{ event: string; node: string }>('select event, node from promote_ready_steps($1)', [
      run,
    ]);
    expect(events).toEqual([{ event: 'promoted', node: 'b' }]);
    expect((await db.step(run, 'c')).open_deps).toBe(1);
    expect(await db.query('select from promote_ready_steps($1)', [run])).toEqual([]);
  });
});
