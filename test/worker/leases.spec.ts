import { execFileSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import type { StepContext } from '#cyclone/graph/step-context.js';
import { startPostgres } from '../support/postgres.js';
import { deferred, dropTemplate, Fixture, job, SOON } from './fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

/** Long enough that a busy machine loses no lease; it is renewed every third of it. */
const TTL = 6_000;

/** Blocks the event loop until the query's first row has a true first column. */
const blockUntil = (sql: string): void => {
  const script = `
    import pg from 'pg';
    const client = new pg.Client({ connectionString: process.env.URL });
    await client.connect();
    while (!Object.values((await client.query(process.env.SQL)).rows[0] ?? {})[0]);
    await client.end();`;
  execFileSync(process.execPath, ['--input-type=module', '--eval', script], {
    env: { ...process.env, NODE_OPTIONS: '', URL: fixture.database.url, SQL: sql },
  });
};

/** Takes the lease of a running step away, as an operator's statement would. */
const steal = (id: string): Promise<unknown> =>
  fixture.rows(
    `update cyclone_steps set lease_owner = 'thief', lease_generation = lease_generation + 1, lease_expiry = now() + interval '1h' where run_id = $1`,
    [id],
  );

/** The lease of a run's step has been renewed since it was claimed. */
const renewed = (id: string): Promise<void> =>
  fixture.until(`select lease_expiry > started_at + $2 * interval '1 ms' from cyclone_steps where run_id = $1`, [
    id,
    TTL,
  ]);

describe('leases', () => {
  it('survive a handler that blocks the event loop for longer than a TTL (R18, S11)', async () => {
    fixture = await Fixture.open();
    const other = await fixture.another();
    let calls = 0;
    const valid: unknown[] = [];
    const handlers = {
      work: async (_: unknown, ctx: StepContext) => {
        calls++;
        blockUntil(
          `select lease_expiry > started_at + interval '${2 * TTL} ms' from cyclone_steps where run_id = ${ctx.runId}`,
        );
        const tx = await ctx.completionTx();
        valid.push(
          await tx.query('select lease_expiry > now() as valid from cyclone_steps where run_id = $1', [ctx.runId]),
        );
        await tx.query('insert into ledger values ($1, $2, 1)', [ctx.runId, ctx.node]);
      },
    };
    await other.worker({}, { leaseTtl: TTL }).start();
    await fixture.worker(handlers, { leaseTtl: TTL }).start();
    const id = await fixture.submitOne(job('work'));
    await fixture.idle();
    expect(calls).toBe(1);
    expect(valid).toEqual([[{ valid: true }]]);
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'completed', reclaims: 0, lease_generation: 1 });
  });

  it('are renewed as long as a handler without a timeout works (S45, S63)', async () => {
    fixture = await Fixture.open();
    let calls = 0;
    const done = deferred();
    await fixture.worker({ work: () => (calls++, done.promise) }, { leaseTtl: TTL }).start();
    const id = await fixture.submitOne(job('work'));
    await renewed(id);
    done.resolve();
    await fixture.idle();
    expect(calls).toBe(1);
    expect(await fixture.step(id, 'work')).toMatchObject({ reclaims: 0, lease_generation: 1 });
  });

  it('that are lost abort the signal; the late result and its writes are dropped (R12, S10, S59)', async () => {
    fixture = await Fixture.open();
    const started = deferred();
    const used = deferred<unknown>();
    await fixture
      .worker(
        {
          work: async (_: unknown, ctx) => {
            const tx = await ctx.completionTx();
            await tx.query('insert into ledger values ($1, $2, 1)', [ctx.runId, ctx.node]);
            started.resolve();
            await new Promise<void>((resolve) => ctx.signal.addEventListener('abort', () => resolve()));
            await ctx.completionTx().catch(used.resolve);
            await tx.query('insert into ledger values ($1, $2, 2)', [ctx.runId, ctx.node]);
          },
        },
        { leaseTtl: TTL },
      )
      .start();
    const id = await fixture.submitOne(job('work'));
    await started.promise;
    await steal(id);
    expect(await used.promise).toMatchObject({ code: 'CYCLONE_LEASE_LOST' });
    await fixture.until(
      `select count(*) = 0 from pg_stat_activity where datname = current_database() and state like 'idle in%'`,
    );
    expect(await fixture.rows('select * from ledger')).toEqual([]);
    expect(fixture.typesOf(id)).toEqual(['claimed', 'lease_lost']);
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'running', lease_owner: 'thief' });
  });

  it('that were lost before the commit fence the completion transaction (R12)', async () => {
    fixture = await Fixture.open();
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          const tx = await ctx.completionTx();
          await tx.query('insert into ledger values ($1, $2, 1)', [ctx.runId, ctx.node]);
          await steal(ctx.runId);
        },
      })
      .start();
    const id = await fixture.submitOne(job('work'));
    await fixture.until(`select exists (select 1 from cyclone_steps where lease_owner = 'thief')`);
    while (fixture.stepEvents('lease_lost').length === 0) await delay(5);
    expect(await fixture.rows('select * from ledger')).toEqual([]);
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'running', lease_owner: 'thief' });
  });

  it('that were lost before the flush drop the completion (R12)', async () => {
    fixture = await Fixture.open();
    await fixture.worker({ work: (_: unknown, ctx) => steal(ctx.runId).then(() => 'late') }).start();
    const id = await fixture.submitOne(job('work'));
    while (fixture.stepEvents('lease_lost').length === 0) await delay(5);
    expect(fixture.typesOf(id)).toEqual(['claimed', 'lease_lost']);
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'running', output: null });
  });

  it('of a worker that is gone expire, and another one takes the steps, uncharged (R19, S20)', async () => {
    fixture = await Fixture.open();
    const [id] = (await fixture.submit(job('work'))) as [string];
    await fixture.rows(
      `update cyclone_steps set state = 'running', lease_owner = 'dead', lease_generation = 1, started_at = now(), lease_expiry = now() + interval '50 ms' where run_id = $1`,
      [id],
    );
    await fixture.worker({ work: () => 'second' }, { leaseTtl: TTL }).start();
    await fixture.idle();
    expect(await fixture.step(id, 'work')).toMatchObject({
      state: 'completed',
      attempt: 1,
      reclaims: 1,
      lease_generation: 2,
    });
    expect(fixture.typesOf(id)).toEqual(['reclaimed', 'claimed', 'completed', 'run_completed']);
  });

  it('of a crash loop end by maxReclaims (S56)', async () => {
    fixture = await Fixture.open();
    const [id] = (await fixture.submit(job('crash'))) as [string];
    await fixture.worker({}, { leaseTtl: TTL, maxReclaims: 2 }).start();
    for (let crash = 0; crash < 3; crash++) {
      await fixture.until(`select state = 'available' from cyclone_steps where run_id = $1`, [id]);
      await fixture.rows(
        `update cyclone_steps set state = 'running', lease_owner = 'dead', lease_generation = lease_generation + 1, started_at = now(), lease_expiry = now() where run_id = $1`,
        [id],
      );
    }
    await fixture.idle();
    expect(await fixture.step(id, 'crash')).toMatchObject({
      state: 'discarded',
      error_kind: 'reclaim_limit',
      reclaims: 2,
    });
  });

  it('are given up by a worker that cannot renew them for a TTL (C8), and its health says so (S22)', async () => {
    fixture = await Fixture.open();
    const started = deferred();
    const aborted = deferred();
    const worker = fixture.worker(
      {
        work: (_: unknown, ctx) => {
          ctx.signal.addEventListener('abort', () => aborted.resolve());
          started.resolve();
          return aborted.promise;
        },
      },
      { leaseTtl: '2s' },
    );
    await worker.start();
    const id = await fixture.submitOne(job('work'));
    await started.promise;
    // Somebody holds the table in a way that no statement of the engine gets through.
    const runner = fixture.dataSource.createQueryRunner();
    await runner.query(
      'begin; lock table cyclone_steps in access exclusive mode; lock table cyclone_workers in access exclusive mode',
    );
    await aborted.promise;
    while (worker.health().healthy) await delay(20);
    await runner.query('rollback');
    await runner.release();
    await fixture.idle();
    while (!worker.health().healthy) await delay(20);
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'completed', attempt: 1 });
  });

  it('are watched by a new thread when the thread dies', async () => {
    fixture = await Fixture.open();
    const done = deferred();
    const worker = fixture.worker({ work: () => done.promise }, { leaseTtl: '6s' });
    await worker.start();
    const id = await fixture.submitOne(job('work'));
    const pid = `(select max(pid) from pg_stat_activity where datname = current_database() and application_name = 'cyclone-leases')`;
    await fixture.until(`select state = 'running' from cyclone_steps where run_id = $1`, [id]);
    const [before] = await fixture.rows(`select ${pid} as pid, lease_expiry from cyclone_steps where run_id = $1`, [
      id,
    ]);
    const { runtime } = worker as unknown as {
      runtime: { keeper: { thread: { thread: { terminate(): Promise<number> } } } };
    };
    await runtime.keeper.thread.thread.terminate();
    await fixture.until(`select ${pid} <> $2 and lease_expiry > $3 from cyclone_steps where run_id = $1`, [
      id,
      before?.['pid'],
      before?.['lease_expiry'],
    ]);
    done.resolve();
    await fixture.idle();
    expect(await fixture.step(id, 'work')).toMatchObject({ reclaims: 0 });
  });

  it('are renewed with a password function that lives on the main thread (R18)', async () => {
    const server = await startPostgres();
    try {
      const { password } = new URL(server.url);
      let asked = 0;
      fixture = await Fixture.open({
        server: server.url,
        password: () => {
          if (new Error('who asks').stack?.includes('lease-keeper')) asked++;
          return password;
        },
      });
      const done = deferred();
      await fixture.worker({ work: () => done.promise }, { leaseTtl: TTL }).start();
      const id = await fixture.submitOne(job('work'));
      await renewed(id);
      done.resolve();
      await fixture.idle();
      expect(asked).toBeGreaterThan(0);
      await fixture.close();
    } finally {
      await server.destroy();
      fixture = await Fixture.open();
    }
  });

  it('are renewed on the main thread when the options cannot cross to another one (C12)', async () => {
    fixture = await Fixture.open({ extra: { stream: undefined, ssl: false, verifyMe: () => true } });
    const done = deferred();
    await fixture.worker({ work: () => done.promise }, { leaseTtl: TTL }).start();
    const id = await fixture.submitOne(job('work'));
    await renewed(id);
    done.resolve();
    await fixture.idle();
    expect(fixture.log.join()).toContain('renewed on the main thread');
  });

  it('send nothing while there are none, once it is known that they can be renewed', async () => {
    fixture = await Fixture.open();
    const worker = fixture.worker({ work: () => 1 }, { leaseTtl: TTL });
    await worker.start();
    while (worker.health().renewals.by === 'none') await fixture.pause();
    const lastSent = `select query_start::text from pg_stat_activity where application_name = 'cyclone-leases' and state = 'idle' and query <> '' and datname = current_database()`;
    await fixture.until(`select exists (${lastSent})`);
    const before = await fixture.rows(lastSent);
    const [seen] = await fixture.rows('select last_seen_at::text as at from cyclone_workers');
    await fixture.until(`select last_seen_at > $1::timestamptz + $2 * interval '1 ms' from cyclone_workers`, [
      seen?.['at'],
      TTL,
    ]);
    expect(await fixture.rows(lastSent)).toEqual(before);
  });
});

describe('timeouts', () => {
  it('abort the signal, charge the attempt, free the slot, and drop the late result (R17, S12)', async () => {
    fixture = await Fixture.open();
    const late = deferred();
    const worker = fixture.worker(
      { work: (_: unknown, ctx) => (ctx.attempt === 1 ? late.promise.then(() => 'first') : 'second') },
      { queues: { default: 1 } },
    );
    await worker.start();
    const id = await fixture.submitOne(job('work', null, { policy: { timeoutMs: 5_000, backoff: SOON } }));
    await fixture.idle();
    expect(worker.health().ignoringSignal).toBe(1);
    late.resolve();
    while (worker.health().ignoringSignal > 0) await delay(5);
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'completed', attempt: 2, output: 'second' });
    expect(fixture.typesOf(id)).toEqual(['claimed', 'timed_out', 'claimed', 'completed', 'run_completed']);
    const [attempt] = await fixture.rows(`select outcome, error_kind from cyclone_attempts`);
    expect(attempt).toEqual({ outcome: 'timed_out', error_kind: 'timeout' });
  });

  it('discard a step whose attempts are used up, with error_kind timeout', async () => {
    fixture = await Fixture.open();
    await fixture.worker({ work: () => new Promise(() => undefined) }).start();
    const id = await fixture.submitOne(job('work', null, { policy: { timeoutMs: 50 }, maxAttempts: 1 }));
    await fixture.idle();
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'discarded', error_kind: 'timeout', attempt: 1 });
    expect(fixture.typesOf(id)).toEqual(['claimed', 'timed_out', 'discarded', 'run_failed']);
  });

  it('roll back a completion transaction whose statement is still under way', async () => {
    fixture = await Fixture.open();
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          const tx = await ctx.completionTx();
          await tx.query('insert into ledger values ($1, $2, 1)', [ctx.runId, ctx.node]);
          await tx.query('select pg_sleep(60)');
        },
      })
      .start();
    await fixture.submitOne(job('work', null, { policy: { timeoutMs: 200 }, maxAttempts: 1 }));
    await fixture.idle();
    await fixture.until(
      `select count(*) = 0 from pg_stat_activity where datname = current_database() and query like '%pg_sleep(60)%' and pid <> pg_backend_pid()`,
    );
    expect(await fixture.rows('select * from ledger')).toEqual([]);
  });

  it('of handlers that never return do not starve other steps, and health turns red (S49)', async () => {
    fixture = await Fixture.open();
    const worker = fixture.worker(
      { stuck: () => new Promise(() => undefined), fine: () => 1 },
      { queues: { default: 2 } },
    );
    await worker.start();
    await fixture.submit(
      ...Array.from({ length: 2 }, () => job('stuck', null, { policy: { timeoutMs: 50 }, maxAttempts: 1 })),
    );
    await fixture.idle();
    await fixture.submit(job('fine'));
    await fixture.idle();
    expect(worker.health()).toMatchObject({ healthy: false, ignoringSignal: 2 });
  });

  it('that no worker settles are found by the sweep, long before the TTL (S46)', async () => {
    fixture = await Fixture.open();
    const [id] = (await fixture.submit(job('work', null, { policy: { timeoutMs: 60_000, backoff: SOON } }))) as [
      string,
    ];
    await fixture.rows(
      `update cyclone_steps set state = 'running', lease_owner = 'dead', lease_generation = 1, started_at = now() - interval '60 s', lease_expiry = now() where run_id = $1`,
      [id],
    );
    await fixture.worker({ work: () => 'second' }, { leaseTtl: TTL }).start();
    await fixture.idle();
    expect(await fixture.step(id, 'work')).toMatchObject({ attempt: 2, reclaims: 0 });
  });
});
