import { EngineDatabase, told, type EngineEvent, type EngineSession, type TestGraph } from '../support/engine-sql.js';

// Limits of months, and limits in runs that are paused, retried or both.

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const secondsTo = (column: string, node: string): Promise<number> =>
  db.value(`select round(extract(epoch from ${column} - cyclone_now()))::float8 from cyclone_steps where node = $1`, [
    node,
  ]);
const deadlineIn = (run: string): Promise<number> =>
  db.value(`select round(extract(epoch from deadline_at - cyclone_now()))::float8 from cyclone_runs where id = $1`, [
    run,
  ]);

/** Lets the lease of the only claimable step expire, and says what the sweep makes of it. */
async function crash(maxReclaims: number | null): Promise<string | undefined> {
  await db.claim({ owner: 'crashed', leaseMs: 1 });
  await db.query(`update cyclone_steps set lease_expiry = lease_expiry - interval '1 s' where state = 'running'`);
  return told(await db.sweep({ maxReclaims }))[0];
}

describe('limits of months', () => {
  it('hold a deadline of a year to the day (R27)', async () => {
    const run = await db.submit({ a: [] }, { deadlineMs: 365 * DAY });
    await database.moveClock(365 * DAY - HOUR);
    expect(await db.deadlines()).toEqual([]);
    await database.moveClock(365 * DAY + HOUR);
    expect(told(await db.deadlines())).toEqual(['discarded a', 'run_failed']);
    await db.retry(run);
    expect(await deadlineIn(run)).toBe((365 * DAY) / 1_000);
  });

  it('keep what is left of a deadline, a timer and a maxWait through a pause of half a year (R26)', async () => {
    const run = await db.submit(
      {
        t: { type: 'timer', policy: { waitMs: 90 * DAY } },
        s: { type: 'signal', policy: { waitMs: 60 * DAY } },
        c: { type: 'child', policy: { waitMs: 40 * DAY } },
      },
      { deadlineMs: 365 * DAY },
    );
    await database.moveClock(30 * DAY);
    await db.pause(run);
    await database.moveClock(200 * DAY);
    expect(await db.deadlines()).toEqual([]);
    await db.resume(run);
    expect(await deadlineIn(run)).toBeCloseTo((335 * DAY) / 1_000, -1);
    expect(await secondsTo('wake_at', 't')).toBeCloseTo((60 * DAY) / 1_000, -1);
    expect(await secondsTo('wake_at', 's')).toBeCloseTo((30 * DAY) / 1_000, -1);
    expect(await secondsTo('wake_at', 'c')).toBeCloseTo((10 * DAY) / 1_000, -1);
  });

  it.each(['snoozed', 'failed'])(
    'put a step that has %s back for 60 days, through a pause or not (R15, R26)',
    async (outcome) => {
      const run = await db.submit({ a: [] });
      expect(
        await db.settle(outcome, await db.claimOne(), { errorKind: 'retryable', delayMs: 60 * DAY }),
      ).toMatchObject([{ info: { delayMs: 60 * DAY } }]);
      await database.moveClock(20 * DAY);
      await db.pause(run);
      await database.moveClock(40 * DAY);
      await db.resume(run);
      await database.moveClock(60 * DAY - HOUR);
      expect(await db.claim()).toEqual([]);
      await database.moveClock(60 * DAY + HOUR);
      expect(await db.claimOne()).toMatchObject({ attempt: outcome === 'failed' ? 2 : 1 });
    },
  );

  it('start a run that is delayed by 60 days then, and count its deadline from there (R9)', async () => {
    const run = await db.submit({ a: [] }, { delayMs: 60 * DAY, deadlineMs: 30 * DAY });
    await database.moveClock(59 * DAY);
    expect(await db.claim()).toEqual([]);
    expect(await db.deadlines()).toEqual([]);
    await database.moveClock(61 * DAY);
    expect(await db.claim()).toHaveLength(1);
    await database.moveClock(89 * DAY);
    expect(await db.deadlines()).toEqual([]);
    await database.moveClock(91 * DAY);
    expect(told(await db.deadlines())).toContain('run_failed');
    expect((await db.run(run)).state).toBe('failed');
  });

  it('renew the lease of an execution up to its timeout of 90 days, which the sweep then charges (R10, R17)', async () => {
    const run = await db.submit({ a: { policy: { timeoutMs: 90 * DAY } } });
    const step = await db.claimOne();
    for (const day of [30, 60]) {
      await database.moveClock(day * DAY);
      expect(await db.heartbeat([step])).toEqual([]);
      expect(await secondsTo('lease_expiry', 'a')).toBe(30);
    }
    await database.moveClock(90 * DAY - 10_000);
    await db.heartbeat([step]);
    expect(await secondsTo('lease_expiry', 'a')).toBeLessThanOrEqual(10);
    await database.moveClock(90 * DAY + 1_000);
    expect(await db.sweep({ maxReclaims: 0 })).toMatchObject([{ event: 'timed_out', attempt: 2 }]);
    expect((await db.step(run, 'a')).reclaims).toBe(0);
  });

  it('are told without an overflow at the longest duration, a thousand years', async () => {
    const longest = 1_000 * 365 * DAY;
    const run = await db.submit({ a: { policy: { timeoutMs: longest } } }, { deadlineMs: longest });
    await db.pause(run);
    await db.resume(run);
    await db.settle('snoozed', await db.claimOne(), { delayMs: longest });
    expect(await secondsTo('scheduled_at', 'a')).toBeGreaterThan(longest / 1_000 - 60);
  });
});

describe('a running step of a paused run', () => {
  const policy = { timeoutMs: 20_000, backoff: { baseMs: 5_000, factor: 1, maxMs: 5_000, jitter: false } };

  it('keeps its lease and its timeout (R26, spec 3)', async () => {
    const run = await db.submit({ a: { policy } });
    const step = await db.claimOne();
    await db.pause(run);
    await database.moveClock(5_000);
    expect(await db.heartbeat([step])).toEqual([]);
    expect(await secondsTo('lease_expiry', 'a')).toBe(15);
  });

  const ends: [string, number, (step: EngineEvent) => Promise<unknown>][] = [
    ['fails', 2, (step) => db.fail(step, { delayMs: 60_000 })],
    ['times out', 2, (step) => db.settle('timed_out', step, { error: 'late', errorKind: 'timeout', delayMs: 60_000 })],
    ['snoozes', 1, (step) => db.settle('snoozed', step, { delayMs: 60_000 })],
    ['is released', 1, (step) => db.settle('released', step)],
    ['is reclaimed', 1, () => database.moveClock(10_000).then(() => db.sweep())],
    ['is found past its timeout', 2, () => database.moveClock(21_000).then(() => db.sweep())],
  ];
  it.each(ends)('that %s is paused, and resume makes it claimable at its time (R26)', async (_, attempt, end) => {
    const run = await db.submit({ a: { policy } });
    const step = await db.claimOne({ leaseMs: 9_000 });
    await db.pause(run);
    await end(step);
    expect(await db.states(run)).toBe('paused: a=paused');
    const { scheduled_at: due, attempt: now, reclaims } = await db.step(run, 'a');
    expect(now).toBe(attempt);
    expect(await db.claim()).toEqual([]);
    await db.resume(run);
    expect(await db.step(run, 'a')).toMatchObject({ state: 'available', scheduled_at: due, attempt, reclaims });
    await database.moveClock(120_000);
    expect(await db.claimOne()).toMatchObject({ attempt, generation: 2 });
  });

  it('that times out for the last time fails the run during the pause (R26, spec 3)', async () => {
    const run = await db.submit({ a: { maxAttempts: 1, policy }, b: { kind: 'unserved' } });
    await db.claimOne();
    await db.pause(run);
    await database.moveClock(60_000);
    expect(told(await db.sweep())).toEqual(['timed_out a', 'discarded a', 'cancelled b', 'run_failed']);
    expect(await db.run(run)).toMatchObject({ state: 'failed', paused_at: null });
  });

  it('that uses up its reclaims fails the run during the pause (R19, R26)', async () => {
    const run = await db.submit({ a: [] });
    await db.claimOne();
    await db.pause(run);
    await database.moveClock(60_000);
    expect(told(await db.sweep({ maxReclaims: 0 }))).toEqual(['discarded a', 'run_failed']);
    expect(await db.step(run, 'a')).toMatchObject({ error_kind: 'reclaim_limit' });
  });
});

describe('maxReclaims (R19)', () => {
  it('of 0 discards at the first expiry, of 1 at the second, and without a bound never', async () => {
    await db.submit({ none: [] });
    expect(await crash(0)).toBe('discarded none');
    await db.submit({ one: [] });
    expect(await crash(1)).toBe('reclaimed one');
    expect(await crash(1)).toBe('discarded one');
    await db.submit({ free: [] });
    for (let i = 0; i < 25; i++) expect(await crash(null)).toBe('reclaimed free');
  });

  it('counts across failures and snoozes, which leave the count as it is', async () => {
    const run = await db.submit({ a: [] });
    expect(await crash(2)).toBe('reclaimed a');
    await db.fail(await db.claimOne());
    await db.settle('snoozed', await db.claimOne(), { delayMs: 0 });
    expect((await db.step(run, 'a')).reclaims).toBe(1);
    expect(await crash(2)).toBe('reclaimed a');
    expect(await crash(2)).toBe('discarded a');
  });

  it('is the full bound again after a retry, also for what was cancelled meanwhile (R25, spec 4)', async () => {
    const run = await db.submit({ a: [], b: { priority: 1 } });
    await db.query(`update cyclone_steps set reclaims = 2 where node = 'b'`);
    for (const expected of ['reclaimed a', 'discarded a']) {
      await db.claim({ owner: 'crashed', leaseMs: 1, queues: { default: 1 } });
      await db.query(`update cyclone_steps set lease_expiry = lease_expiry - interval '1 s' where state = 'running'`);
      expect(told(await db.sweep({ maxReclaims: 1 }))[0]).toBe(expected);
    }
    expect(await db.states(run)).toBe('failed: a=discarded b=cancelled');
    await db.retry(run, 'a');
    expect(await db.query('select node, reclaims, error_kind, attempt from cyclone_steps order by node')).toEqual([
      { node: 'a', reclaims: 0, error_kind: null, attempt: 2 },
      { node: 'b', reclaims: 0, error_kind: null, attempt: 1 },
    ]);
    for (const expected of ['reclaimed', 'discarded']) {
      await db.claim({ owner: 'crashed', leaseMs: 1, queues: { default: 1 } });
      await db.query(`update cyclone_steps set lease_expiry = lease_expiry - interval '1 s' where state = 'running'`);
      expect((await db.sweep({ maxReclaims: 1 }))[0]).toMatchObject({ event: expected, node: 'a', attempt: 2 });
    }
  });
});

describe('a retried run', () => {
  async function failedDuringPause(graph: TestGraph): Promise<string> {
    const run = await db.submit({ x: { kind: 'x' }, ...graph }, { deadlineMs: 60_000 });
    const x = await db.claimOne({ kinds: ['x'] });
    await database.moveClock(50_000);
    await db.pause(run);
    await db.failForGood(x);
    expect((await db.run(run)).state).toBe('failed');
    return run;
  }

  it('has its whole deadline again, not what a pause had kept of it (R27)', async () => {
    const run = await failedDuringPause({});
    await database.moveClock(1_000_000);
    expect(await db.deadlines()).toEqual([]);
    await db.retry(run);
    expect(await db.run(run)).toMatchObject({ deadline_left_ms: null, paused_at: null, state: 'running' });
    expect(await deadlineIn(run)).toBe(60);
  });

  it('has its whole deadline again after a failure that came before the deadline (R27)', async () => {
    const run = await db.submit({ a: [] }, { deadlineMs: 60_000 });
    await database.moveClock(50_000);
    await db.failForGood(await db.claimOne());
    await db.retry(run);
    expect(await deadlineIn(run)).toBe(60);
    await database.moveClock(100_000);
    expect(await db.deadlines()).toEqual([]);
  });

  it('may be paused and keeps what is left of the new deadline (R26, R27)', async () => {
    const run = await db.submit({ a: [] }, { deadlineMs: 60_000 });
    await database.moveClock(61_000);
    await db.deadlines();
    await db.retry(run);
    await database.moveClock(81_000);
    await db.pause(run);
    await database.moveClock(900_000);
    await db.resume(run);
    expect(await deadlineIn(run)).toBe(40);
  });

  it('without a deadline has none afterwards', async () => {
    const run = await db.submit({ a: [] });
    await db.failForGood(await db.claimOne());
    await db.retry(run);
    expect(await db.run(run)).toMatchObject({ deadline_at: null, deadline_left_ms: null });
  });

  it('lets a timer that the deadline discarded keep its wake-up time (R27)', async () => {
    const run = await db.submit({ t: { type: 'timer', policy: { waitMs: 90_000 } } }, { deadlineMs: 60_000 });
    await database.moveClock(61_000);
    await db.deadlines();
    await db.retry(run);
    expect(await db.states(run)).toBe('running: t=waiting_timer');
    expect(await secondsTo('wake_at', 't')).toBe(29);
  });

  it('gives a timer that had not begun its whole time, however often the run was retried before', async () => {
    const run = await db.submit({
      x: { kind: 'x' },
      a: { kind: 'a' },
      t: { type: 'timer', after: ['a'], policy: { waitMs: 60_000 } },
    });
    await db.failForGood(await db.claimOne({ kinds: ['x'] }));
    await db.retry(run);
    const [x, a] = [await db.claimOne({ kinds: ['x'] }), await db.claimOne({ kinds: ['a'] })];
    await db.pause(run);
    await db.flush([a]);
    await db.failForGood(x);
    expect(await db.states(run)).toBe('failed: a=completed t=cancelled x=discarded');
    await database.moveClock(600_000);
    await db.retry(run);
    expect(await db.states(run)).toBe('running: a=completed t=waiting_timer x=available');
    expect(await secondsTo('wake_at', 't')).toBe(60);
    await db.cancel(run);
  });
});
