import { EngineDatabase, told, type EngineSession } from '../support/engine-sql.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

describe('the deadline scan (R27)', () => {
  it('discards what is not terminal with error_kind deadline, fails the run, and leaves others alone', async () => {
    const graph = {
      a: [],
      done: [],
      b: ['a'],
      t: { type: 'timer', policy: { waitMs: 90_000_000 } },
      s: { type: 'signal' },
      c: { type: 'child' },
      x: { kind: 'unserved' },
    };
    const run = await db.submit(graph, { deadlineMs: 60_000 });
    const later = await db.submit({ y: { kind: 'unserved' } }, { deadlineMs: 61_000_000 });
    const claimed = await db.claim();
    await db.flush(claimed.filter(({ node }) => node === 'done'));
    expect(await db.deadlines()).toEqual([]);
    await database.moveClock(60_001);
    const events = await db.deadlines();
    expect(told(events).toSorted()).toEqual(
      [...['a', 'b', 'c', 's', 't', 'x'].map((node) => `discarded ${node}`), 'run_failed'].toSorted(),
    );
    expect(events.find(({ node }) => node === 'a')).toMatchObject({
      generation: 1,
      info: { was: 'running', errorKind: 'deadline', contained: false },
    });
    expect(await db.states(run)).toBe(
      'failed: a=discarded b=discarded c=discarded done=completed s=discarded t=discarded x=discarded',
    );
    expect(await db.run(run)).toMatchObject({
      open_steps: 0,
      uncontained_discards: 6,
      deadline_at: null,
      failed_at: expect.any(Date),
    });
    expect(await db.query('select node, outcome, error_kind, worker from cyclone_attempts')).toEqual([
      { node: 'a', outcome: 'discarded', error_kind: 'deadline', worker: 'me' },
    ]);
    expect((await db.run(later)).state).toBe('running');
    expect(await db.deadlines()).toEqual([]);
  });

  it('ignores containment: what a deadline discards fails the run', async () => {
    const run = await db.submit(
      { a: [], b: { after: ['a'], policy: { onDepFailure: 'cancel_branch' } } },
      { deadlineMs: 1_000 },
    );
    await database.moveClock(1_001);
    await db.deadlines();
    expect(await db.states(run)).toBe('failed: a=discarded b=discarded');
  });

  it('does not touch a paused run, whose clock stands still (R26)', async () => {
    const run = await db.submit({ a: [] }, { deadlineMs: 60_000 });
    await database.moveClock(40_000);
    await db.pause(run);
    expect((await db.run(run)).deadline_at).toBeNull();
    await database.moveClock(600_000);
    expect(await db.deadlines()).toEqual([]);
    await db.resume(run);
    await database.moveClock(615_000);
    expect(await db.deadlines()).toEqual([]);
    await database.moveClock(621_000);
    expect(told(await db.deadlines())).toEqual(['discarded a', 'run_failed']);
  });

  it('gives a retried run its whole deadline again', async () => {
    const run = await db.submit({ a: [] }, { deadlineMs: 60_000 });
    await database.moveClock(61_000);
    await db.deadlines();
    expect(told(await db.retry(run))).toEqual(['reopened a', 'run_retried']);
    await database.moveClock(120_000);
    expect(await db.deadlines()).toEqual([]);
    await database.moveClock(122_000);
    expect(told(await db.deadlines())).toEqual(['discarded a', 'run_failed']);
  });

  it('does not let locked or broken runs at the head use up its limit (C2)', async () => {
    const runs = await db.submitMany(
      ['locked', 'broken', 'c', 'd'].map((node) => ({ [node]: [] })),
      { deadlineMs: 60_000 },
    );
    await db.query(`update cyclone_runs set deadline_at = deadline_at - interval '1 s' where id = any($1)`, [
      runs.slice(0, 2),
    ]);
    await db.client.query(`create function test_break() returns trigger language plpgsql as
      $$ begin if new.node = 'broken' and new.state = 'discarded' then raise 'this row is broken'; end if; return new; end $$;
      create trigger test_break before update on cyclone_steps for each row execute function test_break()`);
    const other = await database.open();
    await other.query('begin');
    await other.query('select from cyclone_runs where id = $1 for no key update', [runs[0]]);
    await database.moveClock(61_000);
    const events = await db.deadlines(1);
    await db.client.query('drop trigger test_break on cyclone_steps; drop function test_break()');
    await other.query('rollback');
    expect(told(events)).toEqual(['broken', 'discarded c', 'run_failed']);
    expect(events[0]).toMatchObject({ run_id: runs[1], info: { error: 'this row is broken' } });
    expect((await db.deadlines()).filter(({ event }) => event === 'run_failed')).toHaveLength(3);
  });

  it('fences what was running (R12)', async () => {
    await db.submit({ a: [] }, { deadlineMs: 1_000 });
    const a = await db.claimOne();
    await database.moveClock(1_001);
    await db.deadlines();
    expect(told(await db.flush([a]))).toEqual(['lease_lost a']);
    expect(await db.heartbeat([a])).toMatchObject([{ outcome: 'gone' }]);
  });
});
