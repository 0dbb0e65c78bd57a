import { once } from 'node:events';
import type { StepContext } from '#cyclone/graph/step-context.js';
import { RetryAfterError } from '#cyclone/model/errors/index.js';
import { deferred, dropTemplate, Fixture, job, SOON } from './fixture.js';

// Limits of months at work, and what a pause and a crash loop do to them.

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

const TTL = 6_000;
const DAY = 86_400_000;

/** Sets the engine's clock to so many days after the real one. */
const moveClock = (days: number): Promise<unknown> =>
  fixture.rows(
    `create or replace function cyclone_now() returns timestamptz language sql volatile as
       $$ select clock_timestamp() + ${days * 24} * interval '1 hour' $$`,
  );
const isState = (id: string, state: string): Promise<void> =>
  fixture.until('select state = $2 from cyclone_steps where run_id = $1', [id, state]);
const renewed = (id: string): Promise<void> =>
  fixture.until(`select lease_expiry > started_at + $2 * interval '1 ms' from cyclone_steps where run_id = $1`, [
    id,
    TTL,
  ]);

describe('limits of months', () => {
  it('let an execution with a timeout of 90 days go on (R17, C12)', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    const done = deferred();
    await fixture.worker({ work: () => done.promise }, { leaseTtl: TTL }).start();
    const id = await fixture.submitOne(job('work', null, { policy: { timeoutMs: 90 * DAY } }));
    await renewed(id);
    done.resolve();
    await fixture.idle();
    expect(fixture.typesOf(id)).toEqual(['claimed', 'completed', 'run_completed']);
  });

  it.each([
    ['ctx.snooze', 1, (ctx: StepContext) => ctx.snooze('60d')],
    [
      'RetryAfterError',
      2,
      () => {
        throw new RetryAfterError('60d');
      },
    ],
  ])('let a step come back after the 60 days of %s, as attempt %i, and not before (R15)', async (_, attempt, leave) => {
    fixture = await Fixture.open({ role: 'worker' });
    const attempts: number[] = [];
    await fixture
      .worker({
        work: (_input: unknown, ctx: StepContext) => {
          attempts.push(ctx.attempt);
          if (attempts.length === 1) leave(ctx);
        },
      })
      .start();
    const id = await fixture.submitOne(job('work'));
    await fixture.until(`select state = 'available' and lease_generation = 1 from cyclone_steps where run_id = $1`, [
      id,
    ]);
    await moveClock(59);
    const other = await fixture.submitOne(job('work')); // is claimed although it came later
    await isState(other, 'completed');
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'available', attempt });
    await moveClock(61);
    await isState(id, 'completed');
    expect(attempts).toEqual([1, 1, attempt]);
  });

  it('start a run that is delayed by 60 days then (R9)', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    await fixture.worker({ work: () => 'done' }).start();
    const id = await fixture.submitOne({ ...job('work'), delayMs: 60 * DAY });
    await isState(await fixture.submitOne(job('work')), 'completed');
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'available' });
    await moveClock(61);
    await isState(id, 'completed');
  });

  it('end a run at its deadline of 365 days, and abort the handler that is at work in it (R27, R28)', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    const aborted = deferred();
    await fixture
      .worker(
        {
          work: async (_: unknown, ctx: StepContext) => {
            await once(ctx.signal, 'abort');
            aborted.resolve();
          },
        },
        { leaseTtl: TTL },
      )
      .start();
    const id = await fixture.submitOne({ ...job('work'), deadlineMs: 365 * DAY });
    await renewed(id);
    await moveClock(364);
    // The leases of all have expired by this clock, until they are renewed.
    await fixture.until(
      `select lease_expiry > cyclone_now() from cyclone_steps where run_id = $1 and state = 'running'`,
      [id],
    );
    await moveClock(366);
    await aborted.promise;
    await fixture.until(`select state = 'failed' from cyclone_runs where id = $1`, [id]);
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'discarded', error_kind: 'deadline' });
  });

  it('serve with worker options of months: work is heard of, a cancellation reaches its handler, the stop is prompt (C12, R28, F41)', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    const aborted = deferred();
    const began = deferred();
    const worker = await fixture.settledWorker(
      {
        quick: () => 'done',
        slow: async (_: unknown, ctx: StepContext) => {
          began.resolve();
          await once(ctx.signal, 'abort');
          aborted.resolve();
        },
      },
      { leaseTtl: '90d', stallLimit: '90d', pollInterval: '60d', shutdownTimeout: '60d' },
    );
    const other = await fixture.another();
    await isState((await other.submit(job('quick')))[0] ?? '', 'completed'); // only a notification can tell of it
    const slow = await fixture.submitOne(job('slow'));
    await began.promise;
    await fixture.engine.connections.use((session) => fixture.engine.store.cancel(session, slow, null));
    // Another process cancels: only a renewal, made at once, can tell this one.
    other.engine.notifier.wake({ cancelled: [slow] });
    await aborted.promise;
    await worker.stop();
    expect(fixture.log).toEqual([]);
  });
});

describe('a pause', () => {
  it('does not stop the timeout of an execution; the retry waits for resume (R17, R26)', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    const began = deferred();
    await fixture
      .worker({
        work: async (_: unknown, ctx: StepContext) => {
          if (ctx.attempt > 1) return;
          began.resolve();
          await once(ctx.signal, 'abort');
        },
      })
      .start();
    const id = await fixture.submitOne(job('work', null, { policy: { timeoutMs: 500, backoff: SOON } }));
    await began.promise;
    await fixture.engine.connections.use((session) => fixture.engine.store.pause(session, id));
    await isState(id, 'paused');
    expect(await fixture.step(id, 'work')).toMatchObject({ attempt: 2, error_kind: 'timeout', reclaims: 0 });
    await fixture.engine.connections.use((session) => fixture.engine.store.resume(session, id));
    await fixture.idle();
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'completed', attempt: 2 });
  });

  it('keeps a snooze of a running step for resume, uncharged (R15, R26)', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    const go = deferred();
    const attempts: number[] = [];
    await fixture
      .worker({
        work: async (_: unknown, ctx: StepContext) => {
          attempts.push(ctx.attempt);
          await go.promise;
          if (attempts.length === 1) ctx.snooze(1);
        },
      })
      .start();
    const id = await fixture.submitOne(job('work'));
    await isState(id, 'running');
    await fixture.engine.connections.use((session) => fixture.engine.store.pause(session, id));
    go.resolve();
    await isState(id, 'paused');
    await fixture.engine.connections.use((session) => fixture.engine.store.resume(session, id));
    await fixture.idle();
    expect(attempts).toEqual([1, 1]);
  });
});

describe('worker.maxReclaims (R19)', () => {
  const expire = (id: string): Promise<unknown> =>
    fixture.rows(
      `update cyclone_steps set state = 'running', lease_owner = 'dead', lease_generation = lease_generation + 1, started_at = now(),
              lease_expiry = now() - interval '1 s' where run_id = $1`,
      [id],
    );

  it.each([
    [0, 0, 'discarded'],
    [1, 0, 'completed'],
    [1, 1, 'discarded'],
    [20, 20, 'discarded'],
    [false, 1_000_000, 'completed'],
  ] as const)(
    '%p: a step that was reclaimed %i times before is %s at the next expiry',
    async (maxReclaims, before, state) => {
      fixture = await Fixture.open({ role: 'worker' });
      const id = await fixture.submitOne(job('work'));
      await fixture.rows('update cyclone_steps set reclaims = $1', [before]);
      await expire(id);
      await fixture.worker({ work: () => 'done' }, { leaseTtl: TTL, maxReclaims }).start();
      await isState(id, state);
      expect(await fixture.step(id, 'work')).toMatchObject({
        attempt: 1,
        error_kind: state === 'discarded' ? 'reclaim_limit' : null,
        reclaims: state === 'discarded' ? before : before + 1,
      });
    },
  );
});
