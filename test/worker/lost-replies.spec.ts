import type { StepContext } from '#cyclone/graph/step-context.js';
import type { CallPhase } from '#cyclone/store/session.js';
import { chain, dropTemplate, Fixture, job, SOON } from './fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

interface Socket {
  readonly connection: { readonly stream: { destroy(): void; pause(): void } };
}

/** Cuts the connection at a phase of the nth call of an engine function; `lost` are the cuts that happened. */
function cutAt(
  call: string,
  phase: CallPhase,
  every: number,
  most: number,
): { observer: NonNullable<Parameters<typeof Fixture.open>[0]>['observer']; cuts: () => number } {
  let calls = 0;
  let cuts = 0;
  return {
    cuts: () => cuts,
    observer: (name, at, client) => {
      if (name !== call || at !== phase || calls++ % every !== every - 1 || cuts >= most) return;
      cuts++;
      const { stream } = (client as unknown as Socket).connection;
      if (phase === 'sent') {
        // The server has the call; its answer will not be read.
        stream.pause();
        setTimeout(() => stream.destroy(), 50);
      } else stream.destroy();
    },
  };
}

describe.each(['before', 'sent', 'after'] as const)('a connection that is lost %s a call', (phase) => {
  it('that completes and claims loses no step and completes none twice (C4)', async () => {
    const { observer, cuts } = cutAt('cyclone_flush', phase, 3, 10);
    fixture = await Fixture.open({ observer });
    const calls = new Map<string, number>();
    const handlers = {
      work: (_: unknown, ctx: StepContext) => {
        const key = `${ctx.idempotencyKey}`;
        calls.set(key, (calls.get(key) ?? 0) + 1);
      },
    };
    await fixture.worker(handlers, { queues: { default: 20 } }).start();
    await fixture.submit(...Array.from({ length: 300 }, () => chain(['work', 'work'])));
    await fixture.idle();
    expect(cuts()).toBe(10);
    expect(calls.size).toBe(600);
    expect([...calls.values()].filter((count) => count !== 1)).toEqual([]);
    const [row] = await fixture.rows(
      `select count(*)::int as n, max(reclaims) as reclaims from cyclone_steps where state = 'completed'`,
    );
    expect(row).toEqual({ n: 600, reclaims: 0 });
    expect(fixture.stepEvents('completed')).toHaveLength(600);
    expect(fixture.stepEvents('lease_lost')).toEqual([]);
  });

  it('that commits a completion transaction is decided by the database, never guessed (C4)', async () => {
    const { observer, cuts } = cutAt('complete', phase, 3, 10);
    fixture = await Fixture.open({ observer });
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          const tx = await ctx.completionTx();
          await tx.query('insert into ledger values ($1, $2, $3)', [ctx.runId, ctx.node, ctx.attempt]);
        },
      })
      .start();
    await fixture.submit(...Array.from({ length: 60 }, () => job('work', null, { policy: { backoff: SOON } })));
    await fixture.idle();
    expect(cuts()).toBe(10);
    const [row] = await fixture.rows(
      `select count(*)::int as n, count(*) filter (where l.amount = s.attempt)::int as same, max(attempt) as attempt
         from ledger l join cyclone_steps s using (run_id, node) where s.state = 'completed'`,
    );
    expect(row).toEqual({ n: 60, same: 60, attempt: 1 });
    expect(fixture.stepEvents('completed')).toHaveLength(60);
  });

  it('that settles failures charges each of them once', async () => {
    const { observer, cuts } = cutAt('cyclone_settle', phase, 2, 5);
    fixture = await Fixture.open({ observer });
    await fixture
      .worker({
        work: (_: unknown, ctx) => {
          if (ctx.attempt < 3) throw new Error('again');
        },
      })
      .start();
    await fixture.submit(...Array.from({ length: 30 }, () => job('work', null, { policy: { backoff: SOON } })));
    await fixture.idle();
    expect(cuts()).toBe(5);
    const [row] = await fixture.rows(
      `select count(*)::int as n, max(attempt) as attempt, max(lease_generation) as claims from cyclone_steps where state = 'completed'`,
    );
    expect(row).toEqual({ n: 30, attempt: 3, claims: 3 });
  });
});

describe('a completion transaction that was committed although its answer was lost', () => {
  it('leaves nobody waiting for the next poll: what it promoted is claimed at once (C4)', async () => {
    let cuts = 0;
    fixture = await Fixture.open({
      observer: (call, phase, client) => {
        if (call !== 'complete' || phase !== 'after' || cuts++ > 0) return;
        (client as unknown as Socket).connection.stream.destroy();
        throw new Error('the connection was cut before the answer came');
      },
    });
    await fixture.settledWorker({
      ledger: async (_: unknown, ctx: StepContext) => {
        const tx = await ctx.completionTx();
        await tx.query('insert into ledger values ($1, $2, 1)', [ctx.runId, ctx.node]);
      },
      work: () => 1,
    });
    await fixture.submit(chain(['ledger', 'work']));
    await fixture.idle();
    expect(cuts).toBe(1);
    expect(fixture.stepEvents('completed').filter(({ kind }) => kind !== 'first')).toHaveLength(2);
  });
});

describe('backends that are terminated', () => {
  it('fifty times, everywhere, cost no step, no attempt, no second effect, and not the process (F1, R39, S3)', async () => {
    fixture = await Fixture.open();
    const handlers = {
      plain: () => 1,
      ledger: async (_: unknown, ctx: StepContext) => {
        const tx = await ctx.completionTx();
        await tx.query('insert into ledger values ($1, $2, 1)', [ctx.runId, ctx.node]);
      },
    };
    await fixture.worker(handlers, { queues: { default: 20 }, leaseTtl: '2s' }).start();
    const killer = await fixture.another();
    const run = (i: number) => job(i % 2 ? 'plain' : 'ledger', null, { maxAttempts: 1 });
    for (let kill = 0; kill < 50; kill++) {
      await killer.submit(...Array.from({ length: 20 }, (_, i) => run(i)));
      await killer
        .rows(
          `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() order by random() limit 3`,
        )
        .catch(() => undefined);
    }
    await killer.idle();
    const [row] = await killer.rows(
      `select count(*)::int as steps, (select count(*)::int from ledger) as ledger from cyclone_steps where state = 'completed'`,
    );
    expect(row).toEqual({ steps: 1_000, ledger: 500 });
  });
});
