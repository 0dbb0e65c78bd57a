import type { EntityManager, QueryRunner } from 'typeorm';
import { openDataSource } from '../support/postgres.js';
import { TestClient, until } from './fixture.js';
import { EchoFlow, Pay, steps } from './workflows.js';

let t: TestClient;
beforeAll(async () => {
  t = await TestClient.open();
  await t.dataSource.query(`create table app (name text primary key)`);
});
afterAll(() => t.close());
beforeEach(async () => {
  t.reset();
  await t.dataSource.query('truncate app');
});

const exists = async (id: string) => (await t.sql(`select 1 from cyclone_runs where id = $1`, [id])).length === 1;

/** Runs `work` in a transaction that ends with a rollback. */
async function rolledBack<T>(work: (tx: EntityManager) => Promise<T>): Promise<T> {
  let result!: T;
  const done = new Error('roll back');
  await t.dataSource
    .transaction(async (tx) => {
      result = await work(tx);
      throw done;
    })
    .catch((error: unknown) => {
      if (error !== done) throw error;
    });
  return result;
}

async function withRunner(work: (runner: QueryRunner) => Promise<void>): Promise<void> {
  const runner = t.dataSource.createQueryRunner();
  try {
    await work(runner);
  } finally {
    if (runner.isTransactionActive) await runner.rollbackTransaction();
    await runner.release();
  }
}

describe('a submit in the transaction of the caller (R6)', () => {
  it('exists with the caller’s rows, and wakes workers, only after the commit', async () => {
    const stop = t.listen();
    const run = await t.dataSource.transaction(async (tx) => {
      await tx.query(`insert into app values ('order 1')`);
      const submitted = await t.client.submit(Pay, { amount: 1 }, { tx });
      expect(submitted.created).toBe(true);
      expect(await exists(submitted.id)).toBe(false);
      expect(t.woken).toEqual([]);
      return submitted;
    });
    expect(t.woken).toEqual(['orders']);
    expect(await exists(run.id)).toBe(true);
    await until(() => t.events.length === 4);
    stop();
    expect(t.events.every(({ runId }) => runId === run.id)).toBe(true);
    expect(t.events.map(({ type }) => type)).toEqual(['run_submitted', 'submitted', 'submitted', 'submitted']);
  });

  it('leaves nothing when the transaction rolls back', async () => {
    const before = await t.runCount();
    const runs = await rolledBack(async (tx) => [
      await t.client.submit(Pay, { amount: 1 }, { tx }),
      await t.client.submitOnce(Pay, 'rolled back', { amount: 1 }, { tx }),
      await t.client.enqueue(steps.charge, { amount: 1 }, { tx }),
      ...(await t.client.submitMany(EchoFlow, [1, 2], { tx })),
      ...(await t.client.enqueueMany(steps.notify, ['a', 'b'], { tx })),
    ]);
    expect(runs).toHaveLength(7);
    expect(await t.runCount()).toBe(before);
    expect(t.woken).toEqual([]);
    await expect((runs[0] as (typeof runs)[0]).wait()).rejects.toMatchObject({ code: 'CYCLONE_RUN_NOT_FOUND' });
  });

  it('takes a query runner as well, and many submits at once on it (S41)', async () => {
    const warnings: string[] = [];
    const listener = (warning: Error) => warnings.push(warning.message);
    process.on('warning', listener);
    await withRunner(async (runner) => {
      await runner.startTransaction();
      const runs = await Promise.all([
        ...Array.from({ length: 10 }, (_, i) => t.client.submit(EchoFlow, i, { tx: runner })),
        t.client.submitOnce(EchoFlow, 'with others', 1, { tx: runner.manager }),
        t.client.submitMany(EchoFlow, [1, 2], { tx: runner }),
      ]);
      await runner.commitTransaction();
      for (const run of runs.flat()) expect(await exists(run.id)).toBe(true);
    });
    process.off('warning', listener);
    expect(warnings).toEqual([]);
  });

  it('takes bulk of any size, and the run of the caller’s isolation level', async () => {
    await withRunner(async (runner) => {
      await runner.startTransaction('SERIALIZABLE');
      const runs = await t.client.enqueueMany(
        steps.notify,
        Array.from({ length: 600 }, (_, i) => `u${i}`),
        { tx: runner },
      );
      await runner.commitTransaction();
      expect(t.calls).toEqual(['submit', 'submit']);
      expect(new Set(runs.map(({ id }) => id)).size).toBe(600);
    });
  });

  it.each<[string, (runner: QueryRunner) => unknown]>([
    ['DataSource.manager', () => t.dataSource.manager],
    ['the DataSource', () => t.dataSource],
    ['a repository', () => ({ manager: t.dataSource.manager })],
    ['a query runner without a transaction', (runner) => runner],
    ['the manager of one', (runner) => runner.manager],
  ])('refuses %s, which would commit by itself (C5)', async (_name, tx) => {
    const before = await t.runCount();
    await withRunner(async (runner) => {
      await runner.connect();
      for (const submit of [
        t.client.submit(EchoFlow, 1, { tx: tx(runner) as never }),
        t.client.submitOnce(EchoFlow, 'k', 1, { tx: tx(runner) as never }),
        t.client.enqueueMany(steps.notify, ['a'], { tx: tx(runner) as never }),
      ]) {
        await expect(submit).rejects.toMatchObject({ code: 'CYCLONE_INVALID_OPTION', option: 'tx' });
      }
    });
    expect(await t.runCount()).toBe(before);
  });

  it('refuses a transaction that has ended, also when the submit was not awaited', async () => {
    const before = await t.runCount();
    const late = await t.dataSource.transaction(async (tx) => ({ tx, submit: submitLater(tx) }));
    await expect(late.submit).rejects.toMatchObject({ option: 'tx' });
    await expect(t.client.submit(EchoFlow, 1, { tx: late.tx })).rejects.toMatchObject({ option: 'tx' });
    expect(await t.runCount()).toBe(before);

    async function submitLater(tx: EntityManager): Promise<unknown> {
      const started = t.calls.length;
      await until(() => t.calls.length >= started && tx.queryRunner?.isReleased === true);
      return t.client.submit(EchoFlow, 1, { tx });
    }
  });

  it('says so when the transaction ends while an un-awaited submit is on its way', async () => {
    await withRunner(async (runner) => {
      await runner.startTransaction();
      let sent!: () => void;
      const commitIsOnItsWay = new Promise<void>((resolve) => (sent = resolve));
      t.observer = (call, phase) => (call === 'submit' && phase === 'before' ? commitIsOnItsWay : undefined);
      const submit = t.client.submit(EchoFlow, 1, { tx: runner });
      submit.catch(() => undefined);
      await until(() => t.calls.includes('submit'));
      await runner.commitTransaction();
      sent();
      await expect(submit).rejects.toMatchObject({ option: 'tx', problem: expect.stringContaining('on its way') });
    });
  });

  it('refuses a transaction of another DataSource', async () => {
    const other = await openDataSource(t.database.url);
    await other.transaction(async (tx) => {
      await expect(t.client.submit(EchoFlow, 1, { tx })).rejects.toMatchObject({ option: 'tx' });
    });
    await other.destroy();
  });
});

describe('wake-up and events after the commit of the caller (C5)', () => {
  let looked: number;
  /** How many submits have been looked for after the commit, and told of when they were there. */
  const told = () => looked;
  beforeEach(() => {
    looked = 0;
    const { runs } = t.engine;
    const runStates = runs.runStates.bind(runs);
    runs.runStates = async (...args) => {
      const states = await runStates(...args);
      setImmediate(() => looked++);
      return states;
    };
  });
  afterEach(() => {
    delete (t.engine.runs as { runStates?: unknown }).runStates;
  });

  it('do not come with the release of a savepoint, and not for what a savepoint undid', async () => {
    const stop = t.listen();
    let kept = '';
    await t.dataSource.transaction(async (tx) => {
      await tx.transaction(async (nested) => {
        kept = (await t.client.enqueue(steps.charge, { amount: 1 }, { tx: nested })).id;
      });
      expect(t.woken).toEqual([]);
      await tx
        .transaction(async (nested) => {
          await t.client.enqueue(steps.notify, 'a', { tx: nested });
          throw new Error('undo');
        })
        .catch(() => undefined);
      expect(t.woken).toEqual([]);
    });
    expect(t.woken).toContain('orders');
    await until(() => told() === 2);
    stop();
    expect(t.events.map(({ type, runId }) => `${type} ${runId}`)).toEqual([
      `run_submitted ${kept}`,
      `submitted ${kept}`,
    ]);
  });

  it('do not come when COMMIT rolls back an aborted transaction (S5)', async () => {
    const stop = t.listen();
    await t.dataSource.transaction(async (tx) => {
      await t.client.enqueue(steps.charge, { amount: 1 }, { tx });
      await tx.query(`select 1/0`).catch(() => undefined);
    });
    await until(() => told() === 1);
    stop();
    expect(t.events).toEqual([]);
  });

  it('come although a subscriber of the application throws', async () => {
    const subscriber = {
      afterTransactionCommit() {
        throw new Error('subscriber');
      },
    };
    const others = t.dataSource.subscribers.splice(0, Infinity, subscriber);
    try {
      await expect(
        t.dataSource.transaction((tx) => t.client.enqueue(steps.charge, { amount: 1 }, { tx })),
      ).rejects.toThrow('subscriber');
    } finally {
      t.dataSource.subscribers.splice(0, Infinity, ...others);
    }
    expect(t.woken).toEqual(['orders']);
  });

  it('come once for each transaction of a runner that is used again', async () => {
    await withRunner(async (runner) => {
      for (const end of ['rollbackTransaction', 'commitTransaction', 'commitTransaction'] as const) {
        await runner.startTransaction();
        if (t.woken.length === 0) await t.client.enqueue(steps.charge, { amount: 1 }, { tx: runner });
        await runner[end]();
      }
      expect(t.woken).toEqual(['orders']);
    });
  });

  it('do not fail the commit when a listener of the wake-up throws', async () => {
    const stop = t.engine.notifier.subscribe(() => {
      throw new Error('listener');
    });
    await t.dataSource.transaction((tx) => t.client.enqueue(steps.charge, { amount: 1 }, { tx }));
    stop();
    expect(t.warnings).toEqual([expect.stringContaining('listener')]);
  });
});

describe('the transaction of the caller after a refusal (R6)', () => {
  it('goes on after an input that is refused and after a key that is known', async () => {
    const known = await t.client.submitOnce(EchoFlow, 'known', 1);
    const run = await t.dataSource.transaction(async (tx) => {
      await expect(t.client.submit(EchoFlow, 'a\u0000', { tx })).rejects.toMatchObject({ node: 'echo' });
      await expect(t.client.submit(EchoFlow, 1, { tx, priority: 0.5 })).rejects.toMatchObject({ option: 'priority' });
      const again = await t.client.submitOnce(EchoFlow, 'known', 1, { tx });
      expect(again).toMatchObject({ id: known.id, created: false });
      await tx.query(`insert into app values ('after')`);
      return t.client.submit(EchoFlow, 2, { tx });
    });
    expect(await exists(run.id)).toBe(true);
    expect(await t.sql(`select name from app`)).toEqual([{ name: 'after' }]);
  });

  it('finds its own key again', async () => {
    await t.dataSource.transaction(async (tx) => {
      const first = await t.client.submitOnce(EchoFlow, 'own', 1, { tx });
      expect(await t.client.submitOnce(EchoFlow, 'own', 1, { tx })).toMatchObject({ id: first.id, created: false });
    });
  });

  it.each(['REPEATABLE READ', 'SERIALIZABLE'] as const)(
    'goes on under %s after a key that it cannot see, which is a typed error (C7)',
    async (isolation) => {
      await withRunner(async (runner) => {
        await runner.startTransaction(isolation);
        await runner.query(`select 1 from app`);
        await t.client.submitOnce(EchoFlow, `unseen ${isolation}`, 1);
        await expect(t.client.submitOnce(EchoFlow, `unseen ${isolation}`, 1, { tx: runner })).rejects.toMatchObject({
          code: 'CYCLONE_TRANSACTION_CONFLICT',
          reason: 'snapshot',
          workflow: 'echo_flow',
          key: `unseen ${isolation}`,
        });
        await runner.query(`insert into app values ('still alive')`);
        await runner.commitTransaction();
      });
      expect(await t.sql(`select name from app`)).toEqual([{ name: 'still alive' }]);
    },
  );

  it('is never aborted by a deadlock over keys in opposite order: who is refused rolls back and runs again (C7)', async () => {
    const both = (first: string, second: string) =>
      t.dataSource.transaction(async (tx) => {
        await tx.query(`insert into app values ($1)`, [`${first} ${second}`]);
        const runs = [await t.client.submitOnce(EchoFlow, first, 1, { tx })];
        await tx.query(`select pg_sleep(0.05)`);
        const refusal = await t.client.submitOnce(EchoFlow, second, 1, { tx }).catch((error: unknown) => error);
        await tx.query(`select 1`); // fails in a transaction that was aborted
        if (refusal instanceof Error) throw refusal;
        return runs;
      });
    for (const round of [1, 2]) {
      const pairs = [
        [`${round}a`, `${round}b`],
        [`${round}b`, `${round}a`],
      ] as const;
      const outcomes = await Promise.allSettled(pairs.map(([first, second]) => both(first, second)));
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome.status === 'fulfilled') continue;
        expect(outcome.reason).toMatchObject({ code: 'CYCLONE_TRANSACTION_CONFLICT', reason: 'busy' });
        const [first, second] = pairs[index] as (typeof pairs)[0];
        expect(await both(first, second)).toHaveLength(1); // run again, as the error says
      }
    }
    const [{ deadlocks }] = await t.sql(
      `select deadlocks::int from pg_stat_database where datname = current_database()`,
    );
    expect(deadlocks).toBe(0);
  });
});

describe('a connection of the caller that has died (F18)', () => {
  const lost = { code: 'CYCLONE_CONNECTION_LOST', outcome: 'nothing', transient: true };
  const calls = {
    submit: (tx: QueryRunner) => t.client.submit(EchoFlow, 1, { tx }),
    submitOnce: (tx: QueryRunner) => t.client.submitOnce(EchoFlow, 'died', 1, { tx }),
    submitMany: (tx: QueryRunner) => t.client.submitMany(EchoFlow, [1, 2], { tx }),
    enqueue: (tx: QueryRunner) => t.client.enqueue(steps.echo, 1, { tx }),
  };

  /** A runner in a transaction, and the id of its backend. */
  async function begun(): Promise<{ runner: QueryRunner; pid: number }> {
    const runner = t.dataSource.createQueryRunner();
    await runner.startTransaction();
    const [{ pid }] = (await runner.query('select pg_backend_pid() as pid')) as [{ pid: number }];
    return { runner, pid };
  }

  const terminate = (pid: number) => t.sql('select pg_terminate_backend($1, 10000)', [pid]);

  it.each(Object.entries(calls))('%s says so, whether TypeORM has noticed or not', async (_, call) => {
    const { runner, pid } = await begun();
    await terminate(pid);
    await expect(call(runner)).rejects.toMatchObject(lost);
    await until(() => runner.isReleased);
    await expect(call(runner)).rejects.toMatchObject(lost);
  });

  it('gives the words of the server as the cause where it died under the submit (F51)', async () => {
    const { runner, pid } = await begun();
    t.observer = async (call, phase) => {
      if (call !== 'submit' || phase !== 'before') return;
      await terminate(pid);
      await until(() => runner.isReleased);
    };
    const error: unknown = await t.client.submit(EchoFlow, 1, { tx: runner }).catch((thrown: unknown) => thrown);
    t.observer = undefined;
    expect(error).toMatchObject(lost);
    expect((error as { cause: Error }).cause.message).toContain('terminating connection due to administrator command');
  });
});
