import { EngineDatabase, told, type EngineEvent, type EngineSession } from '../support/engine-sql.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

const register = (id = 'me') => db.call('cyclone_register_worker', id, 'host', 42, '1.0.0', { default: 10 }, ['work']);

interface TickOptions {
  queues?: string[];
  kinds?: string[];
  sweep?: boolean;
  limit?: number;
}

function tick({ queues = ['default'], kinds = ['work'], sweep = true, limit = 100 }: TickOptions = {}): Promise<
  EngineEvent[]
> {
  return db.call('cyclone_tick', 'me', queues, kinds, 20, sweep, limit, null, 10_000, null);
}

const lastSeen = () => db.value<Date>('select last_seen_at from cyclone_workers');

describe('a tick', () => {
  it('says only that the worker is alive when there is nothing to do (R19)', async () => {
    await register();
    const before = await lastSeen();
    await database.moveClock(5_000);
    expect(await tick()).toEqual([]);
    expect(Number(await lastSeen()) - Number(before)).toBeGreaterThanOrEqual(5_000);
  });

  it('tells a worker that was forgotten to register again, and does the rest all the same', async () => {
    await db.submit({ a: [] });
    expect(told(await tick())).toEqual(['unknown_worker', 'due']);
    await register();
    expect(told(await tick())).toEqual(['due']);
  });

  it('says when the next work of each queue comes due before the next ticks, whatever else is due (F31)', async () => {
    await register();
    const submit = (graph: Record<string, object>, delayMs: number) => db.submit(graph, { delayMs });
    await submit({ a: { priority: 5 } }, 4_000);
    await submit({ a: { priority: -5 } }, 6_000);
    await submit({ a: { kind: 'unknown' } }, 1_000);
    await submit({ a: { queue: 'second' } }, 60_000);
    await submit({ a: { queue: 'third' } }, 3_000);
    await submit({ a: { queue: 'third' } }, 0);
    const later = async () =>
      (await tick({ queues: ['default', 'second', 'third'] })).filter(({ event }) => event === 'later');
    const rows = await later();
    expect(rows.map(({ queue }) => queue).toSorted()).toEqual(['default', 'third']);
    const delays = Object.fromEntries(rows.map(({ queue, info }) => [queue, Number(info?.['delayMs'])]));
    expect(delays['default']).toBeGreaterThan(0);
    expect(delays['default']).toBeLessThanOrEqual(4_000);
    expect(delays['third']).toBeLessThanOrEqual(3_000);
    await database.moveClock(5_000);
    expect((await later()).map(({ queue }) => queue)).toEqual(['default']);
  });

  it('looks for stranded runs, and sweeps all the same when that fails (F7)', async () => {
    await register();
    const run = await db.submit({ a: [] });
    await db.query('set session_replication_role = replica');
    await db.query(`update cyclone_steps set state = 'completed', finished_at = now() where run_id = $1`, [run]);
    await db.query('set session_replication_role = origin');
    expect(told(await tick())).toEqual([]);
    expect(await db.query('select run_id from cyclone_stranded_runs')).toEqual([{ run_id: run }]);
    await db.query('truncate cyclone_runs, cyclone_steps, cyclone_stranded_runs');

    await db.submit({ a: [] });
    await db.claim({ leaseMs: 0 });
    await db.query(`alter function cyclone_run_problems rename to renamed`);
    try {
      await db.query(`update cyclone_marks set at = '-infinity'`);
      const [reclaimed, broken, due] = await tick();
      expect([reclaimed?.event, broken?.event, due?.event]).toEqual(['reclaimed', 'broken', 'due']);
      expect(broken).toMatchObject({ run_id: null, info: { error: expect.stringContaining('cyclone_run_problems') } });
    } finally {
      await db.query(`alter function renamed rename to cyclone_run_problems`);
    }
  });

  it('names the queues that hold work which is due for kinds of this process, and claims nothing', async () => {
    await register();
    await db.submit({
      a: [],
      b: { queue: 'second' },
      c: { queue: 'unserved' },
      d: { queue: 'third', kind: 'unknown' },
    });
    await db.submit({ e: { queue: 'fourth' } }, { delayMs: 60_000 });
    const due = async () =>
      (await tick({ queues: ['default', 'second', 'third', 'fourth'] }))
        .flatMap(({ event, queue }) => (event === 'due' ? queue : []))
        .toSorted();
    expect(await due()).toEqual(['default', 'second']);
    expect(await db.value(`select count(*)::int from cyclone_steps where state = 'running'`)).toBe(0);
    await database.moveClock(60_000);
    expect(await due()).toEqual(['default', 'fourth', 'second']);
  });

  it('sweeps and ends runs past their deadline in the same call', async () => {
    await register();
    await db.submit({ expired: [] });
    await db.claim({ owner: 'crashed' });
    await db.submit({ late: { kind: 'unserved' } }, { deadlineMs: 1_000 });
    await database.moveClock(60_000);
    expect(told(await tick())).toEqual(['reclaimed expired', 'discarded late', 'run_failed', 'due']);
  });

  it('keeps due what was due when the clock of the database is set back, in its order, and says so (F52)', async () => {
    await database.moveClock(3_600_000);
    await register();
    await register('other');
    const [late, early] = [await db.submit({ a: [] }), await db.submit({ a: [] }, { delayMs: 0 })];
    const future = await db.submit({ a: [] }, { delayMs: 600_000 });
    await db.query(`update cyclone_steps set scheduled_at = scheduled_at - interval '10 minutes' where run_id = $1`, [
      early,
    ]);
    await db.submit({ b: { queue: 'second' } });
    await db.claim({ owner: 'dead', queues: { second: 1 } });
    expect(told(await tick())).toEqual(['due']);

    await database.moveClock(0);
    expect(
      await db.value(
        `select count(*)::int from cyclone_steps where scheduled_at > cyclone_now() and state = 'available'`,
      ),
    ).toBe(3);
    const reasons = async (run: string) =>
      (await db.value<{ reasons: { code: string }[] }>(`select cyclone_explain($1, 'a', 60000)`, [run])).reasons.map(
        ({ code }) => code,
      );
    expect(await reasons(late)).toContain('clock_set_back');
    const [noticed, due] = await tick();
    expect(noticed).toMatchObject({ event: 'clock_set_back' });
    expect(Number(noticed?.info?.delayMs)).toBeGreaterThan(3_590_000);
    expect(due?.event).toBe('due');
    expect((await tick()).map(({ event }) => event)).toEqual(['due']);
    const claimed = await db.claim();
    expect(claimed.map(({ run_id }) => run_id)).toEqual([early, late]);

    // What was not due waits for its time, a lease that nobody renews ends at its own, and operators are told until the clock has caught up.
    expect(await reasons(future)).toEqual(['scheduled', 'clock_set_back']);
    await database.moveClock(60_000);
    expect(told(await tick())).toContain('reclaimed b');
    await database.moveClock(3_700_000);
    await tick();
    expect(await db.value(`select count(*)::int from cyclone_marks where name like 'clock%'`)).toBe(0);
  });

  it('does not shorten a lease that was given since the clock was set back a little (F52, R18)', async () => {
    await database.moveClock(25_000);
    await register();
    await tick();
    await database.moveClock(0);
    await db.submit({ a: [] });
    await db.claim({ leaseMs: 30_000 });
    expect((await tick()).map(({ event }) => event)).toContain('clock_set_back');
    expect(
      await db.value(
        `select lease_expiry > cyclone_now() + interval '20 s' from cyclone_steps where state = 'running'`,
      ),
    ).toBe(true);
  });

  it('judges nobody while its process has not been connected for long enough (C8)', async () => {
    await register();
    await db.submit({ expired: [] }, { deadlineMs: 1_000 });
    await db.claim({ owner: 'healthy' });
    await database.moveClock(60_000);
    expect(await tick({ sweep: false })).toEqual([]);
    expect((await db.sweep()).map(({ event }) => event)).toEqual(['reclaimed']);
  });
});

describe('the workers', () => {
  it('are known from their registration on, also after they were forgotten or drained', async () => {
    await register();
    expect(await db.query('select id, host, pid, version, queues, kinds, draining from cyclone_workers')).toEqual([
      { id: 'me', host: 'host', pid: 42, version: '1.0.0', queues: { default: 10 }, kinds: ['work'], draining: false },
    ]);
    await db.call('cyclone_retire_worker', 'me', false);
    expect(await db.value('select draining from cyclone_workers')).toBe(true);
    await register();
    expect(await db.value('select draining from cyclone_workers')).toBe(false);
    await db.call('cyclone_retire_worker', 'me', true);
    expect(await db.query('select from cyclone_workers')).toEqual([]);
  });
});
