import { EngineDatabase, markOf, told, type EngineSession } from '../support/engine-sql.js';
import { Gates } from '../support/gate.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

/** Claims everything and lets the leases expire. */
async function crash(leaseMs = 30_000): Promise<void> {
  await db.claim({ owner: 'crashed', leaseMs });
  await database.moveClock(leaseMs + 1_000);
}

describe('the sweep', () => {
  it('reclaims a step whose lease has expired: same attempt, no backoff, old place in the queue (R19)', async () => {
    const run = await db.submit({ a: [] });
    const { scheduled_at: scheduledAt } = await db.step(run, 'a');
    expect(await db.sweep()).toEqual([]);
    await crash();
    const events = await db.sweep();
    expect(events).toMatchObject([
      { event: 'reclaimed', run_id: run, node: 'a', kind: 'work', attempt: 1, generation: 1 },
    ]);
    expect(await db.step(run, 'a')).toMatchObject({
      state: 'available',
      attempt: 1,
      reclaims: 1,
      scheduled_at: scheduledAt,
      lease_owner: null,
      error: null,
    });
    expect(await db.query('select outcome, worker, attempt from cyclone_attempts')).toEqual([
      { outcome: 'reclaimed', worker: 'crashed', attempt: 1 },
    ]);
    expect(await db.claimOne()).toMatchObject({ attempt: 1, generation: 2 });
    expect(await db.sweep()).toEqual([]);
  });

  it('discards as reclaim_limit at the expiry after the last reclaim, and fails the run (R19, S56)', async () => {
    const run = await db.submit({ a: [] });
    for (const expected of ['reclaimed a', 'reclaimed a', 'discarded a']) {
      await database.moveClock(0);
      await crash(1);
      expect(told(await db.sweep({ maxReclaims: 2 }))[0]).toBe(expected);
    }
    expect(await db.step(run, 'a')).toMatchObject({
      state: 'discarded',
      error_kind: 'reclaim_limit',
      attempt: 1,
      reclaims: 2,
    });
    expect((await db.run(run)).state).toBe('failed');
    expect(await db.query('select kind, error_kind, steps from cyclone_v_dlq')).toEqual([
      { kind: 'work', error_kind: 'reclaim_limit', steps: '1' },
    ]);
  });

  it('reclaims without end when there is no bound (R19)', async () => {
    const run = await db.submit({ a: [] });
    await db.query('update cyclone_steps set reclaims = 1000');
    await crash();
    expect(told(await db.sweep({ maxReclaims: null }))).toEqual(['reclaimed a']);
    expect((await db.step(run, 'a')).reclaims).toBe(1001);
  });

  it('charges a step past its timeout with backoff, before it looks at the reclaims (R17)', async () => {
    const run = await db.submit({
      a: { policy: { timeoutMs: 2_000, backoff: { baseMs: 5_000, factor: 1, maxMs: 5_000, jitter: false } } },
    });
    await db.query('update cyclone_steps set reclaims = 99');
    await crash();
    expect(await db.sweep()).toMatchObject([
      { event: 'timed_out', attempt: 2, info: { errorKind: 'timeout', delayMs: 5_000, state: 'available' } },
    ]);
    expect(await db.step(run, 'a')).toMatchObject({
      state: 'available',
      attempt: 2,
      reclaims: 99,
      error_kind: 'timeout',
    });
  });

  it('discards the last attempt that timed out with error_kind timeout (R17)', async () => {
    const run = await db.submit({ a: { maxAttempts: 1, policy: { timeoutMs: 2_000 } } });
    await crash();
    expect(told(await db.sweep())).toEqual(['timed_out a', 'discarded a', 'run_failed']);
    expect(await db.step(run, 'a')).toMatchObject({ attempt: 1, error_kind: 'timeout' });
  });

  it('reclaims a step with a timeout whose lease expired before the timeout', async () => {
    const run = await db.submit({ a: { policy: { timeoutMs: 600_000 } } });
    await crash();
    expect(told(await db.sweep())).toEqual(['reclaimed a']);
    expect((await db.step(run, 'a')).attempt).toBe(1);
  });

  it('puts a step of a paused run to paused (R26)', async () => {
    const run = await db.submit({ a: [] });
    await db.claim();
    await db.pause(run);
    await database.moveClock(60_000);
    expect(await db.sweep()).toMatchObject([{ event: 'reclaimed', info: { state: 'paused' } }]);
    expect(await db.states(run)).toBe('paused: a=paused');
  });

  it('leaves alone what completes, is renewed or is claimed anew while it looks at others (S2)', async () => {
    const gates = await Gates.install(database);
    const [first, completed, renewed] = await db.submitMany([{ a: [] }, { b: [] }, { c: [] }]);
    const claimed = await db.claim();
    await db.query(`update cyclone_steps set lease_expiry = lease_expiry - interval '1 s' where node = 'a'`);
    await database.moveClock(60_000);
    const sweeper = await database.open();
    await gates.shut('step a available');
    const sweep = await gates.park(sweeper, sweeper.sweep());
    // The sweep has read all three as its candidates and stands at the first.
    expect(told(await db.flush(claimed.filter(({ node }) => node === 'b')))).toEqual(['run_completed']);
    expect(await db.heartbeat(claimed.filter(({ node }) => node === 'c'))).toEqual([]);
    await gates.open('step a available');
    expect(told(await sweep.result)).toEqual(['reclaimed a']);
    expect(await db.states(first!)).toBe('running: a=available');
    expect(await db.step(completed!, 'b')).toMatchObject({ state: 'completed', reclaims: 0 });
    expect(await db.step(renewed!, 'c')).toMatchObject({ state: 'running', reclaims: 0 });
  });

  it('names a step whose run is locked, and reclaims all others (R19, C2)', async () => {
    const runs = await db.submitMany([{ a: [] }, { b: [] }, { c: [] }]);
    await crash();
    const other = await database.open();
    await other.query('begin');
    await other.query('select from cyclone_runs where id = $1 for no key update', [runs[1]]);
    expect(told(await db.sweep()).toSorted()).toEqual(['reclaimed a', 'reclaimed c', 'stuck b']);
    await other.query('rollback');
    expect(told(await db.sweep())).toEqual(['reclaimed b']);
  });

  it('names every step of a locked run, for one of them may hold the lock (C3)', async () => {
    await db.submit({ a: [], b: [] });
    const b = (await db.claim()).find(({ node }) => node === 'b')!;
    await database.moveClock(60_000);
    const stopped = await database.open();
    await stopped.beginCompletion(b);
    await stopped.complete(b);
    const stuck = await db.sweep();
    expect(told(stuck).toSorted()).toEqual(['stuck a', 'stuck b']);
    expect(await db.value('select cyclone_end_backends($1)', [stuck.map(markOf)])).toBe(1);
    while ((await db.sweep()).some(({ event }) => event === 'stuck'));
    expect(await db.query('select node, state, reclaims from cyclone_steps order by node')).toEqual([
      { node: 'a', state: 'available', reclaims: 1 },
      { node: 'b', state: 'available', reclaims: 1 },
    ]);
  });

  it('does not let locked or broken steps at the head use up its limit (R19)', async () => {
    const runs = await db.submitMany(['stuck', 'broken', 'c', 'd', 'e'].map((node) => ({ [node]: [] })));
    await db.query(
      `create function test_break() returns trigger language plpgsql as $$
      begin if new.node = 'broken' and new.state = 'available' then raise 'this row is broken'; end if; return new; end $$;
      create trigger test_break before update on cyclone_steps for each row execute function test_break()`.replaceAll(
        '\n',
        ' ',
      ),
    );
    try {
      await crash();
      await db.query(
        `update cyclone_steps set lease_expiry = lease_expiry - interval '1 s' where node in ('stuck', 'broken')`,
      );
      const other = await database.open();
      await other.query('begin');
      await other.query('select from cyclone_runs where id = $1 for no key update', [runs[0]]);
      const events = await db.sweep({ limit: 2 });
      expect(events.filter(({ event }) => event === 'reclaimed')).toHaveLength(2);
      expect(events.find(({ event }) => event === 'stuck')).toMatchObject({
        node: 'stuck',
        generation: 1,
        kind: 'work',
      });
      expect(events.find(({ event }) => event === 'broken')).toMatchObject({
        node: 'broken',
        info: { error: 'this row is broken', sqlstate: 'P0001' },
      });
      expect(await db.states(runs[1]!)).toBe('running: broken=running');
      expect((await db.sweep({ limit: 2 })).filter(({ event }) => event === 'reclaimed')).toHaveLength(1);
      await other.query('rollback');
    } finally {
      await db.query('drop trigger test_break on cyclone_steps; drop function test_break'.split(';')[0]!);
      await db.query('drop function test_break');
    }
  });

  it('may run in many processes at once: each step is reclaimed once', async () => {
    await db.submitMany(Array.from({ length: 60 }, () => ({ a: [] })));
    await crash();
    const sessions = await Promise.all(Array.from({ length: 3 }, () => database.open()));
    const events = await Promise.all(sessions.map((session) => session.sweep()));
    expect(events.flat().filter(({ event }) => event === 'reclaimed')).toHaveLength(60);
    expect(await db.value('select max(reclaims) from cyclone_steps')).toBe(1);
  });
});
