import { EngineDatabase, told, type EngineSession } from '../support/engine-sql.js';
import { Gates } from '../support/gate.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

const attempts = () =>
  db.query(
    'select node, generation, attempt, worker, outcome, error, error_kind from cyclone_attempts order by node, generation',
  );

describe('a failed attempt', () => {
  it('goes back with a backoff, one attempt on, and is written down (R15)', async () => {
    const policy = { backoff: { baseMs: 10_000, factor: 1, maxMs: 10_000, jitter: false } };
    const run = await db.submit({ a: { policy } });
    const a = await db.claimOne({ owner: 'w1' });
    const events = await db.settle('failed', a, { owner: 'w1', error: 'no', errorKind: 'retryable', stack: 'at x' });
    expect(events).toMatchObject([
      { event: 'retried', run_id: run, node: 'a', kind: 'work', attempt: 2, generation: 1, max_attempts: 5 },
    ]);
    expect(events[0]?.info).toMatchObject({ state: 'available', error: 'no', errorKind: 'retryable', delayMs: 10_000 });
    expect(await db.step(run, 'a')).toMatchObject({
      state: 'available',
      attempt: 2,
      error: 'no',
      error_kind: 'retryable',
      panic_stack: 'at x',
      lease_owner: null,
      lease_expiry: null,
      reclaims: 0,
    });
    expect(await attempts()).toEqual([
      { node: 'a', generation: 1, attempt: 1, worker: 'w1', outcome: 'retried', error: 'no', error_kind: 'retryable' },
    ]);
    expect(await db.claim()).toEqual([]);
    await database.moveClock(10_000);
    expect(await db.claimOne()).toMatchObject({ node: 'a', attempt: 2, generation: 2 });
  });

  it('is discarded at the last attempt, which charges nothing more: 5 of 5 (R11)', async () => {
    const run = await db.submit({ a: [] });
    for (const attempt of [1, 2, 3, 4]) {
      expect(await db.fail(await db.claimOne())).toMatchObject([{ event: 'retried', attempt: attempt + 1 }]);
    }
    const last = await db.claimOne();
    expect(last).toMatchObject({ attempt: 5, max_attempts: 5 });
    const events = await db.fail(last, { error: 'the end', fingerprint: 'f' });
    expect(told(events)).toEqual(['discarded a', 'run_failed']);
    expect(events[0]).toMatchObject({
      attempt: 5,
      info: { error: 'the end', errorKind: 'retryable', contained: false },
    });
    expect(await db.step(run, 'a')).toMatchObject({
      state: 'discarded',
      attempt: 5,
      error: 'the end',
      error_kind: 'retryable',
      error_fingerprint: 'f',
      finished_at: expect.any(Date),
    });
    expect((await attempts()).map(({ attempt, outcome }) => `${attempt} ${outcome}`)).toEqual([
      '1 retried',
      '2 retried',
      '3 retried',
      '4 retried',
      '5 discarded',
    ]);
  });

  it('is discarded at once when it is permanent (R15)', async () => {
    const run = await db.submit({ a: [] });
    expect(told(await db.failForGood(await db.claimOne()))).toEqual(['discarded a', 'run_failed']);
    expect(await db.step(run, 'a')).toMatchObject({ attempt: 1, error_kind: 'permanent' });
    expect(await db.run(run)).toMatchObject({
      state: 'failed',
      failed_at: expect.any(Date),
      finished_at: expect.any(Date),
    });
  });

  it('waits as long as RetryAfterError says, instead of the backoff (R15)', async () => {
    await db.submit({ a: [] });
    expect(await db.fail(await db.claimOne(), { delayMs: 90_000 })).toMatchObject([{ info: { delayMs: 90_000 } }]);
    await database.moveClock(89_000);
    expect(await db.claim()).toEqual([]);
    await database.moveClock(91_000);
    expect(await db.claim()).toHaveLength(1);
  });
});

describe('the backoff (R15)', () => {
  const delays = (backoff: unknown, attempt: number, samples = 1) =>
    db
      .query<{ ms: string }>('select cyclone_backoff($1, $2) as ms from generate_series(1, $3)', [
        backoff === null ? null : JSON.stringify(backoff),
        attempt,
        samples,
      ])
      .then((rows) => rows.map(({ ms }) => Number(ms)));

  it.each([
    [1, 100],
    [2, 300],
    [3, 900],
    [4, 1_000],
    [1_000_000, 1_000],
  ])('after attempt %i is %i ms for 100 ms, factor 3, at most 1 s, without jitter', async (attempt, expected) => {
    expect(await delays({ baseMs: 100, factor: 3, maxMs: 1_000, jitter: false }, attempt)).toEqual([expected]);
  });

  it('does not overflow with the largest factor', async () => {
    const backoff = { baseMs: 86_400_000, factor: 100, maxMs: 31_536_000_000, jitter: false };
    expect(await delays(backoff, 1_000_000)).toEqual([31_536_000_000]);
  });

  it.each([
    [1, 1_000],
    [2, 2_000],
    [5, 16_000],
    [40, 3_600_000],
  ])('by default is spread evenly below the bound: attempt %i, %i ms', async (attempt, bound) => {
    const samples = await delays(null, attempt, 4_000);
    expect(Math.min(...samples)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...samples)).toBeLessThanOrEqual(bound);
    const below = (share: number) => samples.filter((ms) => ms < bound * share).length / samples.length;
    for (const share of [0.1, 0.5, 0.9]) expect(Math.abs(below(share) - share)).toBeLessThan(0.05);
  });
});

describe('a snooze', () => {
  it('charges no attempt, however often (R15, S73)', async () => {
    const run = await db.submit({ a: { maxAttempts: 3 } });
    for (let i = 0; i < 50; i++) {
      expect(told(await db.settle('snoozed', await db.claimOne(), { delayMs: 0 }))).toEqual(['snoozed a']);
    }
    expect(await db.step(run, 'a')).toMatchObject({ attempt: 1, max_attempts: 3, error: null, reclaims: 0 });
    await db.fail(await db.claimOne());
    expect(await db.step(run, 'a')).toMatchObject({ attempt: 2 });
  });

  it('comes back after its delay', async () => {
    await db.submit({ a: [] });
    expect(await db.settle('snoozed', await db.claimOne(), { delayMs: 60_000 })).toMatchObject([
      { info: { delayMs: 60_000 } },
    ]);
    expect(await db.claim()).toEqual([]);
    await database.moveClock(60_000);
    expect(await db.claim()).toHaveLength(1);
  });
});

describe('a release', () => {
  it('makes the step claimable at once, uncharged, in its old place in the queue (R20)', async () => {
    const now = Date.now();
    const old = await db.submit({ old: [] }, { startAt: new Date(now - 60_000) });
    const claimed = await db.claimOne();
    await db.submit({ young: [] });
    expect(told(await db.settle('released', claimed))).toEqual(['released old']);
    expect(await db.step(old, 'old')).toMatchObject({
      state: 'available',
      attempt: 1,
      reclaims: 0,
      scheduled_at: new Date(now - 60_000),
    });
    expect(told(await db.claim({ queues: { default: 1 } }))).toEqual(['claimed old']);
  });
});

describe('an interruption (R39)', () => {
  const error = 'The completion transaction lost its connection: terminating connection';

  it('goes back uncharged, counts as a reclaim and is written down (F1)', async () => {
    const run = await db.submit({ a: { maxAttempts: 1 } });
    const events = await db.settle('interrupted', await db.claimOne(), { error });
    expect(events).toMatchObject([{ event: 'interrupted', node: 'a', attempt: 1, generation: 1, info: { error } }]);
    expect(events[0]?.info).not.toHaveProperty('errorKind');
    expect(await db.step(run, 'a')).toMatchObject({
      state: 'available',
      attempt: 1,
      reclaims: 1,
      error,
      error_kind: null,
      panic_stack: null,
      lease_owner: null,
    });
    expect(await attempts()).toEqual([
      { node: 'a', generation: 1, attempt: 1, worker: 'me', outcome: 'interrupted', error, error_kind: null },
    ]);
  });

  it('says what has happened last: the kind and the stack of an earlier failure do not stay beside its error', async () => {
    const run = await db.submit({ a: [] });
    await db.fail(await db.claimOne(), { error: 'handler panicked: x', stack: 'at x' });
    await db.settle('interrupted', await db.claimOne(), { error });
    expect(await db.step(run, 'a')).toMatchObject({ error, error_kind: null, panic_stack: null, attempt: 2 });
  });

  it.each([
    [0, 1_000],
    [3, 8_000],
    [6, 60_000],
    [1_000, 60_000],
  ])('after %i reclaims comes back within %i ms, whatever the backoff of the step is', async (reclaims, most) => {
    const policy = { backoff: { baseMs: 3_600_000, factor: 1, maxMs: 3_600_000, jitter: false } };
    await db.submitMany(Array.from({ length: 200 }, () => ({ a: { policy } })));
    const claimed = await db.claim({ queues: { default: 200 } });
    await db.query('update cyclone_steps set reclaims = $1', [reclaims]);
    const delays = (await db.settle('interrupted', claimed, { error, maxReclaims: null })).map(({ info }) =>
      Number(info?.delayMs),
    );
    expect(Math.max(...delays)).toBeLessThanOrEqual(most);
    expect(Math.max(...delays)).toBeGreaterThan(most / 2);
  });

  it('ends by itself: past maxReclaims it is discarded as reclaim_limit, reclaims by the sweep included', async () => {
    const run = await db.submit({ a: { maxAttempts: 1 } });
    const interrupt = async () =>
      told(await db.settle('interrupted', await db.claimOne(), { error, delayMs: 0, maxReclaims: 2 }));
    expect(await interrupt()).toEqual(['interrupted a']);
    await db.claimOne({ leaseMs: 0 });
    await database.moveClock(1_000);
    expect(told(await db.sweep({ maxReclaims: 2 }))).toEqual(['reclaimed a']);
    expect(await interrupt()).toEqual(['discarded a', 'run_failed']);
    expect(await db.step(run, 'a')).toMatchObject({
      state: 'discarded',
      attempt: 1,
      reclaims: 2,
      error: `interrupted again after 2 reclaims: ${error}`,
      error_kind: 'reclaim_limit',
    });
    expect((await attempts()).map(({ outcome }) => outcome)).toEqual(['interrupted', 'reclaimed', 'discarded']);
  });
});

describe('a timeout that the worker reports', () => {
  it('is charged with backoff, and the last one discards with error_kind timeout (R17)', async () => {
    const run = await db.submit({ a: { maxAttempts: 2, policy: { timeoutMs: 1_000 } } });
    const timeout = { error: 'timed out', errorKind: 'timeout', delayMs: 0 };
    expect(await db.settle('timed_out', await db.claimOne(), timeout)).toMatchObject([
      { event: 'timed_out', attempt: 2 },
    ]);
    expect(told(await db.settle('timed_out', await db.claimOne(), timeout))).toEqual([
      'timed_out a',
      'discarded a',
      'run_failed',
    ]);
    expect(await db.step(run, 'a')).toMatchObject({ state: 'discarded', attempt: 2, error_kind: 'timeout' });
    expect((await attempts()).map(({ outcome, error_kind: kind }) => `${String(outcome)} ${String(kind)}`)).toEqual([
      'timed_out timeout',
      'discarded timeout',
    ]);
  });
});

describe('every settlement', () => {
  it.each(['failed', 'timed_out', 'snoozed', 'interrupted', 'released'])(
    '%s is dropped when the lease is of another owner, an older generation or a run that was cancelled (R12)',
    async (outcome) => {
      const [one, two, three] = await db.submitMany([{ a: [] }, { b: [] }, { c: [] }]);
      const claimed = await db.claim();
      await db.query(`update cyclone_steps set lease_owner = 'other' where run_id = $1`, [one]);
      await db.settle(
        'released',
        claimed.find(({ node }) => node === 'b')!,
      );
      await db.claimOne();
      await db.cancel(three!);
      expect(told(await db.settle(outcome, claimed))).toEqual(['lease_lost a', 'lease_lost b', 'lease_lost c']);
      expect(await db.states(one!)).toBe('running: a=running');
      expect(await db.states(two!)).toBe('running: b=running');
    },
  );

  it.each(['failed', 'timed_out', 'snoozed', 'interrupted', 'released'])(
    '%s puts a step of a paused run to paused (R26)',
    async (outcome) => {
      const run = await db.submit({ a: [] });
      const a = await db.claimOne();
      await db.pause(run);
      expect(await db.settle(outcome, a, { delayMs: 0 })).toMatchObject([{ info: { state: 'paused' } }]);
      expect(await db.states(run)).toBe('paused: a=paused');
      await db.resume(run);
      expect(await db.claim()).toHaveLength(1);
    },
  );

  it('settles each step of a batch in its own right, and says which run is busy (C2)', async () => {
    const runs = await db.submitMany([{ a: [] }, { b: [] }, { c: [] }]);
    const claimed = await db.claim();
    const other = await database.open();
    await other.query('begin');
    await other.query('select from cyclone_runs where id = $1 for no key update', [runs[1]]);
    expect(told(await db.fail(claimed))).toEqual(['retried a', 'busy b', 'retried c']);
    await other.query('rollback');
    expect(told(await db.fail(claimed.filter(({ node }) => node === 'b')))).toEqual(['retried b']);
  });

  it('waits for a busy run when it is told to, and no longer (C2)', async () => {
    const gates = await Gates.install(database);
    const run = await db.submit({ a: [] });
    const a = await db.claimOne();
    const [other, worker] = [await database.open(), await database.open()];
    await other.query('begin');
    await other.query('select from cyclone_runs where id = $1 for no key update', [run]);
    await expect(worker.fail(a, { waitMs: 20 })).rejects.toMatchObject({ code: '55P03' });
    const waiting = await gates.park(worker, worker.fail(a, { waitMs: 60_000 }));
    await other.query('commit');
    expect(told(await waiting.result)).toEqual(['retried a']);
    expect(await worker.value('show lock_timeout')).toBe('0');
  });

  it('settles two steps of one run in a batch: the first discard cancels the second', async () => {
    const run = await db.submit({ a: [], b: [] });
    const events = await db.fail(await db.claim(), { errorKind: 'permanent' });
    expect(told(events)).toEqual(['discarded a', 'cancelled b', 'run_failed', 'lease_lost b']);
    expect(await db.states(run)).toBe('failed: a=discarded b=cancelled');
  });
});
