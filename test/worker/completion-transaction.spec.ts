import { EventSubscriber, type EntityManager, type EntitySubscriberInterface, type QueryRunner } from 'typeorm';
import type { StepContext } from '#cyclone/graph/step-context.js';
import { sleep } from '#cyclone/model/timer.js';
import { deferred, dropTemplate, Fixture, job, SOON } from './fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

const write = (tx: EntityManager, ctx: StepContext, amount = 1): Promise<unknown> =>
  tx.query('insert into ledger values ($1, $2, $3)', [ctx.runId, ctx.node, amount]);

const ledger = (): Promise<{ amount: number }[]> => fixture.rows('select amount from ledger order by amount');

/** Runs one step whose first attempt is `first`; later ones do nothing. Gives the step's error after the first attempt. */
async function errorOf(first: (ctx: StepContext) => Promise<unknown>): Promise<string> {
  await fixture.worker({ work: (_: unknown, ctx) => (ctx.attempt === 1 ? first(ctx) : 'second') }).start();
  await fixture.submitOne(job('work', null, { policy: { backoff: SOON } }));
  await fixture.idle();
  const [retried] = fixture.stepEvents('retried');
  return retried?.error ?? '';
}

const clientOf = async (tx: EntityManager): Promise<{ query(what: unknown): unknown }> =>
  (await (tx.queryRunner as QueryRunner).connect()) as { query(what: unknown): unknown };

/** Sends a statement as extensions of the driver do, which write their own messages. */
async function unseen(tx: EntityManager, sql: string): Promise<void> {
  const client = await clientOf(tx);
  await new Promise<void>((resolve, reject) => {
    client.query({
      submit: (connection: { query(text: string): void }) => void connection.query(sql),
      handleCommandComplete: () => undefined,
      handleReadyForQuery: () => resolve(),
      handleError: reject,
    });
  });
}

describe('the completion transaction', () => {
  it('commits what the handler writes together with the completion (R13)', async () => {
    fixture = await Fixture.open();
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          const tx = await ctx.completionTx();
          expect(await ctx.completionTx()).toBe(tx);
          await write(tx, ctx);
          return 'written';
        },
      })
      .start();
    const ids = await fixture.submit(...Array.from({ length: 50 }, () => job('work')));
    await fixture.idle();
    const [row] = await fixture.rows(
      `select count(*)::int as n from ledger l join cyclone_steps s using (run_id, node) where s.state = 'completed' and s.output = '"written"'`,
    );
    expect(row).toEqual({ n: ids.length });
    expect(fixture.stepEvents('completed')).toHaveLength(ids.length);
    expect(fixture.events.filter((event) => event.type === 'run_completed')).toHaveLength(ids.length);
  });

  it('rolls back what a failing attempt wrote', async () => {
    fixture = await Fixture.open();
    await errorOf(async (ctx) => {
      await write(await ctx.completionTx(), ctx);
      throw new Error('no');
    });
    expect(await ledger()).toEqual([]);
  });

  it('rejects what a branch of a failed Promise.all writes later, and commits none of it (S1)', async () => {
    fixture = await Fixture.open();
    const late = deferred<unknown>();
    const error = await errorOf(async (ctx) => {
      const tx = await ctx.completionTx();
      const failed = deferred();
      const slow = failed.promise
        .then(() => sleep(50))
        .then(() => write(tx, ctx))
        .catch((problem: unknown) => {
          late.resolve(problem);
          throw problem;
        });
      failed.resolve();
      await Promise.all([slow, Promise.reject(new Error('the other branch'))]);
    });
    expect(error).toBe('the other branch');
    expect(await late.promise).toMatchObject({ code: 'CYCLONE_COMPLETION_TRANSACTION', problem: 'closed' });
    expect(await ledger()).toEqual([]);
  });

  it('awaits what is under way when the handler returns (R13)', async () => {
    fixture = await Fixture.open();
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          const tx = await ctx.completionTx();
          void tx.query('select pg_sleep(0.1)');
          void write(tx, ctx);
        },
      })
      .start();
    await fixture.submitOne(job('work'));
    await fixture.idle();
    expect(await ledger()).toEqual([{ amount: 1 }]);
  });

  it.each([
    ['commits with SQL', 'committed', (tx: EntityManager) => tx.query('COMMIT')],
    ['rolls back with SQL', 'rolled', (tx: EntityManager) => tx.query(' rollback work')],
    ['commits behind a comment', 'committed', (tx: EntityManager) => tx.query('/* x */ select 1; -- y\n commit')],
    ['commits where no look at the text can see it', 'committed', (tx: EntityManager) => unseen(tx, 'commit')],
    ['rolls back where no look at the text can see it', 'rolled', (tx: EntityManager) => unseen(tx, 'rollback')],
    ['sets for longer than it lasts', 'SET LOCAL', (tx: EntityManager) => tx.query('set client_encoding = latin1')],
    ['resets a setting of the session', 'SET LOCAL', (tx: EntityManager) => tx.query('select 1; RESET ROLE')],
    [
      'sets on the client behind it',
      'SET LOCAL',
      async (tx: EntityManager) => (await clientOf(tx)).query("select set_config('search_path', 'x', false)"),
    ],
    ['commits with TypeORM', 'committed', (tx: EntityManager) => tx.queryRunner?.commitTransaction()],
    ['rolls back with TypeORM', 'rolled', (tx: EntityManager) => tx.queryRunner?.rollbackTransaction()],
    ['releases the connection', 'released', (tx: EntityManager) => tx.queryRunner?.release()],
    ['leaves a nested transaction open', 'nested', (tx: EntityManager) => tx.queryRunner?.startTransaction()],
    ['commits on the client behind it', 'committed', async (tx: EntityManager) => (await clientOf(tx)).query('commit')],
  ])('fails an attempt that %s, and says so (R14)', async (_, words, misuse) => {
    fixture = await Fixture.open();
    const error = await errorOf(async (ctx) => {
      const tx = await ctx.completionTx();
      await write(tx, ctx);
      await Promise.resolve(misuse(tx)).catch(() => undefined); // swallowing the error does not help
    });
    expect(error).toContain(words);
    expect(error).toContain('completion transaction');
    const [{ n }] = (await fixture.rows(`select count(*)::int as n from cyclone_steps where state = 'completed'`)) as [
      { n: number },
    ];
    expect(n).toBe(1);
  });

  it('fails an attempt that swallowed an SQL error, because its transaction is aborted (S5)', async () => {
    fixture = await Fixture.open();
    const error = await errorOf(async (ctx) => {
      const tx = await ctx.completionTx();
      await write(tx, ctx);
      await write(tx, ctx).catch(() => undefined);
      return 'looks fine';
    });
    expect(error).toContain('aborted');
    expect(await ledger()).toEqual([]);
  });

  it('lets a handler nest transactions, and lets those started side by side take turns (S29)', async () => {
    fixture = await Fixture.open();
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          const tx = await ctx.completionTx();
          const outcomes = await Promise.allSettled(
            [1, 2, 3, 4, 5].map((amount) =>
              tx.transaction(async (nested) => {
                await nested.query('insert into ledger values ($1, $2, $3)', [ctx.runId, `n${amount}`, amount]);
                if (amount % 2 === 0) throw new Error('undo this one');
                await nested.transaction((inner) => inner.query('select pg_sleep(0.01)'));
              }),
            ),
          );
          return outcomes.map(({ status }) => status);
        },
      })
      .start();
    const id = await fixture.submitOne(job('work'));
    await fixture.idle();
    expect((await ledger()).map(({ amount }) => amount)).toEqual([1, 3, 5]);
    expect((await fixture.step(id, 'work')).output).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
  });

  it('rolls back everything when the output is refused (R36)', async () => {
    fixture = await Fixture.open();
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          await write(await ctx.completionTx(), ctx);
          return { amount: 1n };
        },
      })
      .start();
    const id = await fixture.submitOne(job('work'));
    await fixture.idle();
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'discarded', error_kind: 'permanent', attempt: 1 });
    expect(await ledger()).toEqual([]);
  });

  it('refuses to open after the handler has returned', async () => {
    fixture = await Fixture.open();
    const late = deferred<unknown>();
    await fixture
      .worker({
        work: (_: unknown, ctx) => {
          void sleep(20)
            .then(() => ctx.completionTx())
            .catch(late.resolve);
        },
      })
      .start();
    await fixture.submitOne(job('work'));
    expect(await late.promise).toMatchObject({ code: 'CYCLONE_COMPLETION_TRANSACTION', problem: 'closed' });
  });

  it('checks deferred constraints before the step completes, and a violation fails the attempt (C6)', async () => {
    fixture = await Fixture.open();
    await fixture.rows(
      'create table child (run_id bigint, node text, foreign key (run_id, node) references ledger deferrable initially deferred)',
    );
    const error = await errorOf(async (ctx) => {
      const tx = await ctx.completionTx();
      await tx.query('insert into child values ($1, $2)', [ctx.runId, ctx.node]);
    });
    expect(error).toContain('violates foreign key constraint');
  });

  it('treats a serialization failure in the handler as an ordinary failure (S40)', async () => {
    fixture = await Fixture.open();
    const error = await errorOf(async (ctx) => {
      const tx = await ctx.completionTx();
      await tx.query(`do $$ begin raise exception 'could not serialize' using errcode = '40001'; end $$`);
    });
    expect(error).toContain('could not serialize');
  });

  it('runs the subscribers of TypeORM around the commit; one that throws afterwards does no harm (C5)', async () => {
    const heard: string[] = [];
    @EventSubscriber()
    class Subscriber implements EntitySubscriberInterface {
      async beforeTransactionCommit(event: { manager: EntityManager }): Promise<void> {
        heard.push('before');
        await event.manager.query(`insert into ledger values (0, 'subscriber', 7)`);
      }
      afterTransactionCommit(): void {
        heard.push('after');
        throw new Error('too late');
      }
    }
    fixture = await Fixture.open({ dataSource: { subscribers: [Subscriber] } });
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          await write(await ctx.completionTx(), ctx);
        },
      })
      .start();
    await fixture.submitOne(job('work'));
    await fixture.idle();
    expect(heard).toEqual(['before', 'after']);
    expect(await ledger()).toEqual([{ amount: 1 }, { amount: 7 }]);
    expect(fixture.stepEvents('completed')).toHaveLength(1);
    expect(fixture.log.join()).toContain('too late');
  });

  it('holds no more connections than leave one for a handler that asks the pool for a second one (C14)', async () => {
    fixture = await Fixture.open({ poolSize: 5 });
    let open = 0;
    let most = 0;
    await fixture
      .worker(
        {
          work: async (_: unknown, ctx) => {
            await write(await ctx.completionTx(), ctx);
            most = Math.max(most, ++open);
            await fixture.dataSource.query('select 1');
            open--;
          },
        },
        { queues: { default: 50 } },
      )
      .start();
    await fixture.submit(...Array.from({ length: 50 }, () => job('work')));
    await fixture.idle();
    expect(most).toBeLessThanOrEqual(2);
    expect(await ledger()).toHaveLength(50);
  });

  it('has the server watch for a host that is gone without a word, and no longer than it lasts (F48)', async () => {
    fixture = await Fixture.open({ poolSize: 4 });
    const watch = `select concat_ws(' ', current_setting('tcp_keepalives_idle'), current_setting('tcp_keepalives_interval'),
      current_setting('tcp_keepalives_count'), current_setting('tcp_user_timeout'), pg_backend_pid()) as watch`;
    const seen = deferred<string>();
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          const [row] = (await (await ctx.completionTx()).query(watch)) as [{ watch: string }];
          seen.resolve(row.watch);
        },
      })
      .start();
    await fixture.submitOne(job('work'));
    await fixture.idle();
    expect(await seen.promise).toMatch(/^10 5 3 20000 /);
    const [row] = await fixture.rows<{ watch: string }>(watch);
    expect(row?.watch).not.toMatch(/^10 5 3 20000 /);
  });

  it('leaves no connection in a transaction and no place taken, whatever fails (S6, S18)', async () => {
    let failures = 0;
    fixture = await Fixture.open({
      poolSize: 5,
      observer: async (call, phase, client) => {
        if (call !== 'rollback' || phase !== 'before' || failures++ > 5) return;
        await client.query({ text: 'select pg_terminate_backend(pg_backend_pid())' }).catch(() => undefined);
      },
    });
    await fixture
      .worker(
        {
          work: async (_: unknown, ctx) => {
            await write(await ctx.completionTx(), ctx);
            if (ctx.attempt === 1) throw new Error('roll back');
          },
        },
        { queues: { default: 20 } },
      )
      .start();
    await fixture.submit(...Array.from({ length: 100 }, () => job('work', null, { policy: { backoff: SOON } })));
    await fixture.idle();
    expect(failures).toBeGreaterThan(5);
    expect(await ledger()).toHaveLength(100);
    const [row] = await fixture.rows(
      `select count(*)::int as n from pg_stat_activity where datname = current_database() and state like 'idle in%'`,
    );
    expect(row).toEqual({ n: 0 });
  });
});
