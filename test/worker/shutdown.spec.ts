import { setTimeout as delay } from 'node:timers/promises';
import { jest } from '@jest/globals';
import type { StepContext } from '#cyclone/graph/step-context.js';
import { startPostgres } from '../support/postgres.js';
import { SilentHost } from '../support/silent-host.js';
import { deferred, dropTemplate, Fixture, job } from './fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

describe('a worker that stops', () => {
  it('lets its handlers finish, write and complete, and claims nothing more (R20, S13)', async () => {
    fixture = await Fixture.open();
    let started = 0;
    const all = deferred();
    const go = deferred();
    const worker = fixture.worker(
      {
        work: async (_: unknown, ctx) => {
          if (++started === 5) all.resolve();
          await go.promise;
          const tx = await ctx.completionTx();
          await tx.query('insert into ledger values ($1, $2, 1)', [ctx.runId, ctx.node]);
        },
      },
      { queues: { default: 5 } },
    );
    await worker.start();
    await fixture.submit(...Array.from({ length: 8 }, () => job('work')));
    await all.promise;
    const stopped = worker.stop();
    expect(worker.health().state).toBe('draining');
    go.resolve();
    await stopped;
    const rows = await fixture.rows('select state, count(*)::int as n from cyclone_steps group by 1 order by 1');
    expect(rows).toEqual([
      { state: 'available', n: 3 },
      { state: 'completed', n: 5 },
    ]);
    expect(await fixture.rows('select * from ledger')).toHaveLength(5);
    expect(await fixture.rows('select * from cyclone_workers')).toEqual([]);
  });

  it('aborts handlers after shutdownTimeout and gives their steps back at once, uncharged (R20)', async () => {
    fixture = await Fixture.open();
    const started = deferred();
    let signal: AbortSignal | undefined;
    const worker = fixture.worker(
      {
        deaf: (_: unknown, ctx) => {
          ({ signal } = ctx);
          started.resolve();
          return new Promise(() => undefined);
        },
      },
      { shutdownTimeout: 50 },
    );
    await worker.start();
    const id = await fixture.submitOne(job('deaf'));
    await started.promise;
    await worker.stop();
    expect(signal?.aborted).toBe(true);
    expect(await fixture.step(id, 'deaf')).toMatchObject({ state: 'available', attempt: 1, reclaims: 0 });
    expect(fixture.typesOf(id)).toEqual(['claimed', 'released']);
  });

  it('gives the step back too when the handler ends because of its signal', async () => {
    fixture = await Fixture.open();
    const started = deferred();
    const worker = fixture.worker(
      {
        heeds: async (_: unknown, ctx) => {
          const tx = await ctx.completionTx();
          await tx.query('insert into ledger values ($1, $2, 1)', [ctx.runId, ctx.node]);
          return new Promise((_resolve, reject) => {
            ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason as Error));
            started.resolve();
          });
        },
      },
      { shutdownTimeout: 0 },
    );
    await worker.start();
    const id = await fixture.submitOne(job('heeds'));
    await started.promise;
    await worker.stop();
    expect(await fixture.step(id, 'heeds')).toMatchObject({ state: 'available', attempt: 1, reclaims: 0, error: null });
    expect(await fixture.rows('select * from ledger')).toEqual([]);
  });

  it('may be stopped before its start and twice (S23), and started again', async () => {
    fixture = await Fixture.open();
    const worker = fixture.worker({ work: () => 1 });
    await worker.stop();
    await worker.start();
    await Promise.all([worker.stop(), worker.stop()]);
    expect(worker.health()).toMatchObject({ state: 'stopped', healthy: false });
    await worker.start();
    await fixture.submit(job('work'));
    await fixture.idle();
  });

  it('leaves no connection, no name and no thread behind (S14)', async () => {
    fixture = await Fixture.open();
    const worker = fixture.worker({ work: () => 1 });
    for (let round = 0; round < 5; round++) {
      await worker.start();
      await fixture.submit(job('work'));
      await fixture.idle();
      await worker.stop();
    }
    const ours = await fixture.rows(
      `select application_name from pg_stat_activity where datname = current_database() and application_name like 'cyclone%'`,
    );
    expect(ours).toEqual([]);
  });

  it('touches the database no more, whatever a deaf handler does later', async () => {
    const calls: string[] = [];
    fixture = await Fixture.open({ observer: (call) => void calls.push(call) });
    const started = deferred();
    const go = deferred();
    const refused = deferred<unknown>();
    const worker = fixture.worker(
      {
        deaf: async (_: unknown, ctx: StepContext) => {
          started.resolve();
          await go.promise;
          await ctx.completionTx().catch(refused.resolve);
        },
      },
      { shutdownTimeout: 0 },
    );
    await worker.start();
    await fixture.submit(job('deaf'));
    await started.promise;
    await worker.stop();
    const before = calls.length;
    go.resolve();
    expect(await refused.promise).toMatchObject({ code: 'CYCLONE_LEASE_LOST' });
    await delay(150);
    expect(calls.slice(before)).toEqual([]);
  });
});

describe('a database that goes away', () => {
  it('and comes back finds the worker going on by itself, logging at most once a second (S4, S38)', async () => {
    const server = await startPostgres();
    fixture = await Fixture.open({ server: server.url });
    try {
      const worker = fixture.worker({ work: () => 1 }, { leaseTtl: '2s' });
      await worker.start();
      await fixture.submit(job('work'));
      await fixture.idle();
      await server.stop('immediate');
      const began = performance.now();
      const before = fixture.log.length;
      while (worker.health().healthy) await delay(50);
      const seconds = (performance.now() - began) / 1_000;
      expect(fixture.log.length - before).toBeLessThanOrEqual(seconds + 2);
      await server.start();
      await fixture.until('select true');
      await fixture.submit(job('work'), job('work'));
      await fixture.idle();
      while (!worker.health().healthy) await delay(50);
      await worker.stop();
      await fixture.close();
    } finally {
      await server.destroy();
      fixture = await Fixture.open();
    }
  });

  it('does not keep a worker from stopping', async () => {
    const server = await startPostgres();
    fixture = await Fixture.open({ server: server.url });
    const started = deferred();
    const worker = fixture.worker(
      {
        work: () => {
          started.resolve();
          return new Promise(() => undefined);
        },
      },
      { shutdownTimeout: 50 },
    );
    await worker.start();
    await fixture.submit(job('work'));
    await started.promise;
    await server.stop('immediate');
    await worker.stop();
    expect(worker.health().state).toBe('stopped');
    await server.start();
    await fixture.until('select true');
    await fixture.close();
    await server.destroy();
    fixture = await Fixture.open();
  });

  it('lets a worker start while it is down, and work when it is back (S39)', async () => {
    const server = await startPostgres();
    fixture = await Fixture.open({ server: server.url });
    await fixture.submit(job('work'));
    await server.stop('immediate');
    await fixture.worker({ work: () => 1 }).start();
    await server.start();
    await fixture.until('select true');
    await fixture.idle();
    expect(fixture.stepEvents('completed')).toHaveLength(1);
    await fixture.close();
    await server.destroy();
    fixture = await Fixture.open();
  });
});

describe('a database host that accepts connections and never answers', () => {
  let host: SilentHost;
  beforeEach(async () => {
    fixture = await Fixture.open();
    host = await SilentHost.before(fixture.database.url);
  });
  afterEach(() => host.close());

  const behind = (extra: object = {}) =>
    fixture.another({ extra: { connectionString: host.through(fixture.database.url), ...extra } });

  it('does not keep a worker from stopping that waits for its connections (R20)', async () => {
    const worker = (await behind()).worker({ work: () => 1 });
    host.goDark();
    await worker.start();
    await host.swallows(2); // a lane and the listener
    await worker.stop();
    expect(worker.health().state).toBe('stopped');
  }, 60_000);

  it('does not keep a worker from stopping that renews its leases on the main thread (R18, R20)', async () => {
    const started = deferred();
    const deaf = (): Promise<void> => {
      started.resolve();
      return new Promise(() => undefined);
    };
    const own = await behind({ threadsCannotHaveThis: () => true });
    const worker = own.worker({ deaf }, { leaseTtl: '2s', shutdownTimeout: 0 }, { listen: false });
    await worker.start();
    await own.submit(job('deaf'));
    await started.promise;
    host.goDark();
    await host.swallows(2); // a lane and the renewals
    await worker.stop();
    expect(worker.health().state).toBe('stopped');
  }, 60_000);

  it('is given up after 10 s by connections outside the pool', async () => {
    const { connections } = (await behind()).engine;
    host.goDark();
    jest.useFakeTimers({ doNotFake: ['nextTick', 'performance', 'queueMicrotask', 'setImmediate'] });
    try {
      const opened = connections.openClient('test');
      await host.swallows(1);
      jest.advanceTimersByTime(10_000);
      await expect(opened).rejects.toThrow('timeout');
    } finally {
      jest.useRealTimers();
    }
  });
});

describe('a pool that handlers use up', () => {
  it('never costs a lease or a tick (S42)', async () => {
    fixture = await Fixture.open({ poolSize: 4 });
    const probe = await fixture.another({ poolSize: 2 });
    const done = deferred();
    let calls = 0;
    const worker = fixture.worker(
      {
        work: async () => {
          calls++;
          const runner = fixture.dataSource.createQueryRunner();
          await runner.connect();
          await done.promise;
          await runner.release();
        },
      },
      { leaseTtl: '6s', queues: { default: 5 } },
    );
    await worker.start();
    await probe.submit(...Array.from({ length: 5 }, () => job('work')));
    await probe.until(
      `select count(*) = 5 and min(lease_expiry) > max(started_at) + interval '6 s' from cyclone_steps where state = 'running'`,
    );
    expect(worker.health().healthy).toBe(true);
    done.resolve();
    await probe.idle();
    expect(calls).toBe(5);
  });

  it('that is too small is refused with what to set (C14)', async () => {
    fixture = await Fixture.open({ poolSize: 2 });
    await expect(fixture.worker({}).start()).rejects.toMatchObject({
      code: 'CYCLONE_INVALID_OPTION',
      option: 'dataSource',
    });
  });

  it('of three connections is enough for one lane, a completion transaction and a query of its handler (C14, F14)', async () => {
    fixture = await Fixture.open({ poolSize: 3 });
    const probe = await fixture.another({ poolSize: 2 });
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          const tx = await ctx.completionTx();
          await tx.query('insert into ledger values ($1, $2, 1)', [ctx.runId, ctx.node]);
          await fixture.dataSource.query('select 1');
        },
      })
      .start();
    await probe.submit(...Array.from({ length: 20 }, () => job('work')));
    await probe.idle();
    expect(fixture.log.join()).toContain('one lane');
  });
});
