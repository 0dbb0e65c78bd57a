import { setImmediate } from 'node:timers/promises';
import type { StepContext } from '#cyclone/graph/step-context.js';
import { deferred, dropTemplate, Fixture, job, SOON } from './fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

const TTL = 6_000;

interface Shown {
  progress: number | null;
  progress_note: string | null;
  renewed: boolean;
}
const shown = async (id: string): Promise<Shown> => {
  const [row] = await fixture.rows<Shown>(
    `select progress, progress_note, lease_expiry > started_at + $2 * interval '1 ms' as renewed from cyclone_v_steps where run_id = $1`,
    [id, TTL],
  );
  return row!;
};
const until = (id: string, fraction: number): Promise<void> =>
  fixture.until('select progress = $2 from cyclone_v_steps where run_id = $1', [id, fraction]);

/** How often renewals were made, by the server's own count. */
async function countRenewals(): Promise<number> {
  const [row] = await fixture.rows<{ calls: number }>(
    `select coalesce(sum(calls), 0)::int as calls from pg_stat_user_functions where funcname = 'cyclone_heartbeat'`,
  );
  return row!.calls;
}

describe('ctx.progress (R18)', () => {
  it('is stored by the next renewal of the lease and not before, the last report of all', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    const done = deferred();
    await fixture
      .worker(
        {
          work: (_: unknown, ctx: StepContext) => {
            ctx.progress(0.25, 'opening');
            ctx.progress(0.5);
            return done.promise;
          },
        },
        { leaseTtl: TTL },
      )
      .start();
    const id = await fixture.submitOne(job('work'));
    await fixture.until(`select started_at is not null from cyclone_steps where run_id = $1`, [id]);
    let seen = await shown(id);
    for (; seen.progress === null; seen = await shown(id));
    expect(seen).toEqual({ progress: 0.5, progress_note: 'opening', renewed: true });
    done.resolve();
    await fixture.idle();
  });

  it('costs no statement: ten thousand reports travel with the renewals that are made anyway', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    await fixture.rows(`alter database ${fixture.database.name} set track_functions = 'pl'`); // of sessions that begin now
    const reported = deferred();
    const done = deferred();
    let reports = 0;
    const startedAt = performance.now();
    const worker = fixture.worker(
      {
        work: async (_: unknown, ctx: StepContext) => {
          const end = performance.now() + 3 * (TTL / 3);
          while (performance.now() < end || reports < 10_000) {
            ctx.progress(Math.random(), `report ${++reports}`);
            if (reports % 10 === 0) await setImmediate();
          }
          ctx.progress(1, 'all');
          reported.resolve();
          await done.promise;
        },
        quiet: () => done.promise,
      },
      { leaseTtl: TTL },
    );
    await worker.start();
    const [id] = (await fixture.submit(job('work'), job('quiet'))) as [string];
    await reported.promise;
    await until(id, 1);
    // Later beats carry nothing.
    const at = (await fixture.step(id, 'work'))['lease_expiry'];
    await fixture.until(
      `select lease_expiry > $2::timestamptz + $3 * interval '1 ms' from cyclone_steps where run_id = $1`,
      [id, at, TTL],
    );
    done.resolve();
    await fixture.idle();
    await worker.stop();
    const beats = Math.ceil((performance.now() - startedAt) / (TTL / 3));
    // A session hands in its counts when it ends.
    await fixture.until(
      `select not exists (select 1 from pg_stat_activity where datname = current_database() and application_name = 'cyclone-leases')
          and exists (select 1 from pg_stat_user_functions where funcname = 'cyclone_heartbeat')`,
    );
    const renewals = await countRenewals();
    expect(renewals).toBeGreaterThan(1);
    expect(renewals).toBeLessThanOrEqual(beats + 1);
  });

  it('leaves a handler that reports nonsense with an error that says what to do, and its worker alone', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    const caught: unknown[] = [];
    await fixture
      .worker({
        work: {
          options: { retry: { maxAttempts: 1 } },
          run: (_: unknown, ctx: StepContext) => {
            try {
              ctx.progress(50);
            } catch (error) {
              caught.push(error);
            }
            ctx.progress(0.5, '\ud800');
          },
        },
        fine: () => 'done',
      })
      .start();
    const id = await fixture.submitOne(job('work', null, { maxAttempts: 1 }));
    const fine = await fixture.submitOne(job('fine'));
    await fixture.idle();
    expect(caught).toMatchObject([
      { code: 'CYCLONE_INVALID_OPTION', message: expect.stringMatching(/fraction.*from 0 to 1; it is 50\. Divide/) },
    ]);
    expect(await fixture.step(id, 'work')).toMatchObject({
      state: 'discarded',
      error_kind: 'retryable',
      panic_stack: null,
      error: expect.stringMatching(/note of ctx\.progress\(\) must be a text/),
    });
    expect(await fixture.step(fine, 'fine')).toMatchObject({ state: 'completed' });
  });

  it('is nothing at the beginning of the next attempt', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    const first = deferred();
    const second = deferred();
    const began = deferred();
    await fixture
      .worker(
        {
          work: async (_: unknown, ctx: StepContext) => {
            if (ctx.attempt === 2) {
              began.resolve();
              return second.promise;
            }
            ctx.progress(0.75, 'first');
            await first.promise;
            throw new Error('once more');
          },
        },
        { leaseTtl: TTL },
      )
      .start();
    const id = await fixture.submitOne(job('work', null, { policy: { backoff: SOON } }));
    await until(id, 0.75);
    first.resolve();
    await began.promise;
    expect(await shown(id)).toMatchObject({ progress: null, progress_note: null });
    await fixture.until(
      `select lease_expiry > started_at + $2 * interval '1 ms' from cyclone_steps where run_id = $1`,
      [id, TTL],
    );
    expect(await shown(id)).toMatchObject({ progress: null, progress_note: null });
    second.resolve();
    await fixture.idle();
  });

  it('is ignored after the lease is lost and after the handler has returned', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    const lost = deferred();
    let context: StepContext | undefined;
    await fixture
      .worker(
        {
          work: async (_: unknown, ctx: StepContext) => {
            context = ctx;
            await fixture.rows(
              `update cyclone_steps set lease_owner = 'thief', lease_generation = lease_generation + 1, lease_expiry = now() + interval '1h' where run_id = $1`,
              [ctx.runId],
            );
            await new Promise<void>((resolve) => ctx.signal.addEventListener('abort', () => resolve()));
            ctx.progress(0.5);
            ctx.progress(50); // not even checked
            lost.resolve();
          },
          brief: (_: unknown, ctx: StepContext) => {
            context = ctx;
          },
        },
        { leaseTtl: TTL },
      )
      .start();
    const id = await fixture.submitOne(job('work'));
    await lost.promise;
    const brief = await fixture.submitOne(job('brief'));
    await fixture.until(`select state = 'completed' from cyclone_steps where run_id = $1`, [brief]);
    context?.progress(0.5);
    context?.progress(NaN);
    expect(await fixture.rows('select progress from cyclone_steps where run_id = any($1)', [[id, brief]])).toEqual([
      { progress: null },
      { progress: null },
    ]);
  });

  it('never costs a lease: when it cannot be stored the renewal is made without it', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    await fixture.rows('alter table cyclone_steps add constraint nothing_reported check (progress is null)');
    const done = deferred();
    let calls = 0;
    await fixture
      .worker(
        {
          work: (_: unknown, ctx: StepContext) => {
            calls++;
            const reporting = setInterval(() => ctx.progress(Math.random()), 20);
            return done.promise.finally(() => clearInterval(reporting));
          },
        },
        { leaseTtl: TTL },
      )
      .start();
    const id = await fixture.submitOne(job('work'));
    await fixture.until(
      `select lease_expiry > started_at + $2 * interval '1 ms' from cyclone_steps where run_id = $1`,
      [id, TTL],
    );
    done.resolve();
    await fixture.idle();
    expect(calls).toBe(1);
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'completed', reclaims: 0 });
    expect(fixture.log.join('\n')).toMatch(/Progress could not be stored: .*nothing_reported/);
  });

  it('reaches the database also where leases are renewed on the main thread', async () => {
    fixture = await Fixture.open({ role: 'worker', extra: { ssl: false, verifyMe: () => true } });
    const done = deferred();
    await fixture
      .worker({ work: (_: unknown, ctx: StepContext) => (ctx.progress(0.5, 'here'), done.promise) }, { leaseTtl: TTL })
      .start();
    const id = await fixture.submitOne(job('work'));
    await until(id, 0.5);
    done.resolve();
    await fixture.idle();
    expect(fixture.log.join('\n')).toContain('renewed on the main thread');
  });
});
