import { EngineDatabase, told, type EngineEvent, type EngineSession } from '../support/engine-sql.js';
import { Gates } from '../support/gate.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

const MIXED = {
  a: [],
  b: ['a'],
  idle: { kind: 'unserved' },
  timer: { type: 'timer', policy: { waitMs: 60_000 } },
  signal: { type: 'signal' },
  limited: { type: 'signal', policy: { waitMs: 30_000 } },
  child: { type: 'child', policy: { waitMs: 30_000 } },
};
const refusals = (events: EngineEvent[]) => events.map(({ event, info }) => [event, info?.reason, info?.state]);

describe('cancel', () => {
  it('cancels everything that is open, in every state, and the run (R24)', async () => {
    const run = await db.submit({ ...MIXED, done: [] }, { deadlineMs: 60_000 });
    await db.flush((await db.claim()).filter(({ node }) => node === 'done'));
    const events = await db.cancel(run, 'not wanted');
    expect(told(events)).toEqual([
      ...['a', 'b', 'child', 'idle', 'limited', 'signal', 'timer'].map((node) => `cancelled ${node}`),
      'run_cancelled',
    ]);
    expect(events[0]).toMatchObject({ node: 'a', generation: 1, info: { was: 'running', reason: 'not wanted' } });
    expect(events.at(-1)).toMatchObject({ kind: 'flow', info: { reason: 'not wanted' } });
    expect(await db.run(run)).toMatchObject({
      state: 'cancelled',
      open_steps: 0,
      cancel_reason: 'not wanted',
      deadline_at: null,
      cancelled_at: expect.any(Date),
    });
    expect(await db.query('select node, outcome, error from cyclone_attempts')).toEqual([
      { node: 'a', outcome: 'cancelled', error: 'not wanted' },
    ]);
  });

  it('cancels a paused run', async () => {
    const run = await db.submit(MIXED);
    await db.pause(run);
    expect(told(await db.cancel(run)).at(-1)).toBe('run_cancelled');
    expect(await db.run(run)).toMatchObject({ state: 'cancelled', paused_at: null, cancel_reason: null });
  });

  it.each(['completed', 'failed', 'cancelled'])('refuses a %s run and changes nothing (§9)', async (state) => {
    const run = await db.submit({ a: [] });
    const a = await db.claimOne();
    if (state === 'completed') await db.flush([a]);
    else if (state === 'failed') await db.failForGood(a);
    else await db.cancel(run, 'first');
    const before = await db.run(run);
    expect(refusals(await db.cancel(run, 'second'))).toEqual([['refused', 'already_terminal', state]]);
    expect(await db.run(run)).toEqual(before);
  });

  it('refuses by value, so the transaction of the caller goes on (C6)', async () => {
    await db.query('begin');
    expect(refusals(await db.cancel('999'))).toEqual([['refused', 'not_found', undefined]]);
    expect(refusals(await db.pause('999'))).toEqual([['refused', 'not_found', undefined]]);
    expect(refusals(await db.resume('999'))).toEqual([['refused', 'not_found', undefined]]);
    expect(refusals(await db.retry('999'))).toEqual([['refused', 'not_found', undefined]]);
    const run = await db.submit({ a: [] });
    await db.query('commit');
    expect((await db.run(run)).state).toBe('running');
  });

  it('meets a claim in the middle: the step that was claimed meanwhile is cancelled with its generation (R28)', async () => {
    const gates = await Gates.install(database);
    const run = await db.submit({ a: [] });
    const [worker, operator] = [await database.open(), await database.open()];
    await worker.query('begin');
    expect(await worker.claim()).toHaveLength(1);
    const cancel = await gates.park(operator, operator.cancel(run));
    await worker.query('commit');
    expect(await cancel.result).toMatchObject([
      { event: 'cancelled', node: 'a', generation: 1, info: { was: 'running' } },
      { event: 'run_cancelled' },
    ]);
    expect(await db.query('select outcome from cyclone_attempts')).toEqual([{ outcome: 'cancelled' }]);
  });

  it('meets a claim in the middle, the other way round: the claim gets nothing', async () => {
    const run = await db.submit({ a: [] });
    const operator = await database.open();
    await operator.query('begin');
    await operator.cancel(run);
    expect(await db.claim()).toEqual([]);
    await operator.query('commit');
    expect(await db.claim()).toEqual([]);
  });
});

describe('pause', () => {
  it('stops what is available or waits, lets what runs go on, and keeps pending (R26, spec 3)', async () => {
    const run = await db.submit(MIXED);
    await db.claim();
    const events = await db.pause(run);
    expect(told(events).toSorted()).toEqual([
      ...['child', 'idle', 'limited', 'signal', 'timer'].map((node) => `paused ${node}`),
      'run_paused',
    ]);
    expect(events.find(({ node }) => node === 'signal')?.info).toEqual({ was: 'waiting_signal' });
    expect(await db.states(run)).toBe(
      'paused: a=running b=pending child=paused idle=paused limited=paused signal=paused timer=paused',
    );
    expect(await db.claim({ kinds: ['work', 'unserved'] })).toEqual([]);
  });

  it('of a paused run changes nothing (R26)', async () => {
    const run = await db.submit(MIXED, { deadlineMs: 60_000 });
    await db.pause(run);
    const before = [await db.run(run), await db.step(run, 'timer')];
    await database.moveClock(10_000);
    expect(await db.pause(run)).toEqual([]);
    expect([await db.run(run), await db.step(run, 'timer')]).toEqual(before);
  });

  it('refuses a run that has ended', async () => {
    const run = await db.submit({ a: [] });
    await db.cancel(run);
    expect(refusals(await db.pause(run))).toEqual([['refused', 'already_terminal', 'cancelled']]);
  });

  it('meets a claim in the middle: what was claimed meanwhile goes on running', async () => {
    const gates = await Gates.install(database);
    const run = await db.submit({ a: [], b: { kind: 'unserved' } });
    const [worker, operator] = [await database.open(), await database.open()];
    await worker.query('begin');
    await worker.claim();
    const pause = await gates.park(operator, operator.pause(run));
    await worker.query('commit');
    expect(told(await pause.result)).toEqual(['paused b', 'run_paused']);
    expect(await db.states(run)).toBe('paused: a=running b=paused');
  });

  it('meets a promotion in the middle: the dependent is paused too', async () => {
    const gates = await Gates.install(database);
    const run = await db.submit({ a: [], b: ['a'] });
    const a = await db.claimOne();
    const [worker, operator] = [await database.open(), await database.open()];
    await worker.beginCompletion(a);
    await worker.complete(a);
    const pause = await gates.park(operator, operator.pause(run));
    await worker.query('commit');
    await pause.result;
    expect(await db.states(run)).toBe('paused: a=completed b=paused');
  });
});

describe('resume', () => {
  it('puts every step back to the state of its type with the time that it had left (R26)', async () => {
    const run = await db.submit(MIXED, { deadlineMs: 120_000 });
    await database.moveClock(20_000);
    await db.pause(run);
    await database.moveClock(1_000_000);
    const events = await db.resume(run);
    expect(told(events).toSorted()).toEqual([
      ...['a', 'child', 'idle', 'limited', 'signal', 'timer'].map((node) => `resumed ${node}`),
      'run_resumed',
    ]);
    expect(await db.states(run)).toBe(
      'running: a=available b=pending child=waiting_child idle=available limited=waiting_signal signal=waiting_signal timer=waiting_timer',
    );
    const left = await db.query(
      `select node, round(extract(epoch from wake_at - cyclone_now()))::int as seconds from cyclone_steps where wake_at is not null order by node`,
    );
    expect(left).toEqual([
      { node: 'child', seconds: 10 },
      { node: 'limited', seconds: 10 },
      { node: 'timer', seconds: 40 },
    ]);
    expect(await db.value(`select round(extract(epoch from deadline_at - cyclone_now()))::int from cyclone_runs`)).toBe(
      100,
    );
  });

  it('gives neither a deadline nor a limit to what had none', async () => {
    const run = await db.submit({ a: [], signal: { type: 'signal' } });
    await db.pause(run);
    await db.resume(run);
    expect(await db.run(run)).toMatchObject({ deadline_at: null, deadline_left_ms: null });
    expect(await db.step(run, 'signal')).toMatchObject({ wake_at: null, wait_left_ms: null });
    expect(await db.step(run, 'a')).toMatchObject({ wake_at: null, wait_left_ms: null });
  });

  it('wakes at once what came due at the moment of the pause', async () => {
    const run = await db.submit({ t: { type: 'timer', policy: { waitMs: 1_000 } } });
    await database.moveClock(5_000);
    await db.pause(run);
    expect(await db.step(run, 't')).toMatchObject({ wait_left_ms: '0' });
    await db.resume(run);
    expect(await db.value('select wake_at <= cyclone_now() from cyclone_steps')).toBe(true);
  });

  it('does not shift backoffs and delays (R26)', async () => {
    const run = await db.submit({ a: [] });
    await db.fail(await db.claimOne(), { delayMs: 60_000 });
    const { scheduled_at: due } = await db.step(run, 'a');
    await db.pause(run);
    await database.moveClock(30_000);
    await db.resume(run);
    expect((await db.step(run, 'a')).scheduled_at).toEqual(due);
    expect(await db.claim()).toEqual([]);
    await database.moveClock(61_000);
    expect(await db.claim()).toHaveLength(1);
  });

  it('promotes what became ready meanwhile, with its input, and keeps what did not (R26)', async () => {
    const run = await db.submit({
      a: [],
      b: { spec: { f: 'a' } },
      c: ['b'],
      t: { after: ['a'], type: 'timer', policy: { waitMs: 60_000 } },
      d: ['a', 'x'],
      x: { kind: 'unserved' },
    });
    const a = await db.claimOne();
    await db.pause(run);
    await db.flush([{ ...a, output: { y: 1 } }]);
    expect(await db.states(run)).toBe('paused: a=completed b=pending c=pending d=pending t=pending x=paused');
    await database.moveClock(500_000);
    expect(told(await db.resume(run))).toEqual(['resumed x', 'run_resumed', 'promoted b', 'waiting t']);
    expect(await db.states(run)).toBe(
      'running: a=completed b=available c=pending d=pending t=waiting_timer x=available',
    );
    expect((await db.step(run, 'b')).input).toEqual({ y: 1 });
    expect((await db.step(run, 'd')).open_deps).toBe(1);
    expect(
      await db.value(
        `select round(extract(epoch from wake_at - cyclone_now()))::int from cyclone_steps where node = 't'`,
      ),
    ).toBe(60);
  });

  it('can be repeated: pause and resume leave nothing behind', async () => {
    const run = await db.submit(MIXED, { deadlineMs: 120_000 });
    const before = await db.states(run);
    for (let i = 0; i < 3; i++) {
      await db.pause(run);
      await db.resume(run);
    }
    expect(await db.states(run)).toBe(before);
    expect(await db.query('select node from cyclone_steps where wait_left_ms is not null')).toEqual([]);
  });

  it.each(['running', 'completed', 'failed', 'cancelled'])('refuses a run that is %s', async (state) => {
    const run = await db.submit({ a: [] });
    const a = await db.claimOne();
    if (state === 'completed') await db.flush([a]);
    if (state === 'failed') await db.failForGood(a);
    if (state === 'cancelled') await db.cancel(run);
    expect(refusals(await db.resume(run))).toEqual([['refused', 'not_paused', state]]);
  });
});

describe('operations on the same runs', () => {
  it('never deadlock, whoever does what (S9)', async () => {
    const runs = await db.submitMany(
      Array.from({ length: 6 }, () => ({ a: [], b: ['a'], c: { type: 'signal' }, d: [], e: ['d', 'b'] })),
    );
    const sessions = await Promise.all(Array.from({ length: 6 }, () => database.open()));
    const any = <T>(list: T[], i: number) => list[i % list.length]!;
    await Promise.all(
      sessions.map(async (session, s) => {
        const mine: EngineEvent[] = [];
        for (let i = 0; i < 60; i++) {
          const run = any(runs, i * (s + 1));
          switch ((i + s) % 8) {
            case 0:
              await session.pause(run);
              break;
            case 1:
              mine.push(...(await session.claim({ owner: `w${s}`, queues: { default: 4 } })));
              break;
            case 2:
              await session.resume(run);
              break;
            case 3:
              await session.flush(mine.splice(0, 3), { owner: `w${s}` });
              break;
            case 4:
              await session.fail(mine.splice(0, 2), { owner: `w${s}`, errorKind: 'permanent' });
              break;
            case 5:
              await session.retry(run);
              break;
            case 6:
              await session.sweep();
              break;
            default:
              if (i % 3 === 0) await session.cancel(run);
              else await session.heartbeat(null, { owner: `w${s}` });
          }
        }
      }),
    );
    for (const run of runs) await db.cancel(run);
    expect(await db.value('select count(*)::int from cyclone_runs where open_steps > 0')).toBe(0);
  });
});
