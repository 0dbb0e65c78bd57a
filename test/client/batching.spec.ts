import { AsyncLocalStorage } from 'node:async_hooks';
import { TestClient, until } from './fixture.js';
import { EchoFlow, steps, Wide } from './workflows.js';

let t: TestClient;
beforeAll(async () => {
  t = await TestClient.open();
});
afterAll(() => t.close());
beforeEach(() => t.reset());

const submits = () => t.calls.filter((call) => call === 'submit' || call === 'submitOnce');

describe('concurrent submits', () => {
  it('travel together: 200 take few round trips, and each has its own run (DESIGN §8, S70)', async () => {
    const runs = await Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        i % 2 ? t.client.submit(EchoFlow, i) : t.client.enqueue(steps.charge, { amount: i }),
      ),
    );
    expect(submits().length).toBeLessThanOrEqual(3);
    expect(new Set(runs.map(({ id }) => id)).size).toBe(200);
    const rows = await t.sql(`select run_id, input from cyclone_steps`);
    const inputs = new Map(rows.map(({ run_id, input }) => [run_id, input]));
    expect(runs.map(({ id }) => inputs.get(id))).toEqual(
      Array.from({ length: 200 }, (_, i) => (i % 2 ? i : { amount: i })),
    );
  });

  it('do not make a single one wait', async () => {
    await t.client.submit(EchoFlow, 1);
    expect(t.calls).toEqual(['submit']);
  });

  it('gather while a call is in flight', async () => {
    let release!: () => void;
    const gate = new Promise<void>((resolve) => (release = resolve));
    t.observer = async (call, phase) => {
      if (call === 'submit' && phase === 'after') await gate;
    };
    const first = t.client.submit(EchoFlow, 0);
    await until(() => submits().length === 1);
    const rest = Array.from({ length: 50 }, (_, i) => t.client.submit(EchoFlow, i));
    release();
    await Promise.all([first, ...rest]);
    expect(submits()).toHaveLength(2);
  });

  it('split by size: calls stay within some thousand rows and some megabytes (C13)', async () => {
    await Promise.all(Array.from({ length: 5 }, () => t.client.submit(Wide, 4_000)));
    expect(submits()).toHaveLength(3);
    t.reset();
    await Promise.all(Array.from({ length: 9 }, () => t.client.submit(EchoFlow, 'x'.repeat(1_000_000))));
    expect(submits()).toHaveLength(3);
  });

  it('never mix keyed and unkeyed ones (C7)', async () => {
    await Promise.all([
      ...Array.from({ length: 20 }, (_, i) => t.client.submit(EchoFlow, i)),
      ...Array.from({ length: 20 }, (_, i) => t.client.submitOnce(EchoFlow, `apart ${i}`, i)),
    ]);
    expect(submits().toSorted()).toEqual(['submit', 'submitOnce']);
  });

  it('fail alone when the server refuses one of them', async () => {
    await t.sql(`alter table cyclone_steps add constraint no_thirteen check (input <> '13') not valid`);
    try {
      const outcomes = await Promise.allSettled(Array.from({ length: 30 }, (_, i) => t.client.submit(EchoFlow, i)));
      const refused = outcomes.flatMap((outcome, i) =>
        outcome.status === 'rejected' ? [[i, outcome.reason.sqlState]] : [],
      );
      expect(refused).toEqual([[13, '23514']]);
      const ids = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value.id] : []));
      const [{ n }] = await t.sql(`select count(*)::int as n from cyclone_runs where id = any($1)`, [ids]);
      expect(n).toBe(29);
    } finally {
      await t.sql(`alter table cyclone_steps drop constraint no_thirteen`);
    }
  });

  it('are made again alone when they lost a conflict of the database (S40)', async () => {
    let failures = 0;
    t.observer = (call, phase) => {
      if (call === 'submit' && phase === 'before' && failures++ < 2) {
        throw Object.assign(new Error('deadlock detected'), { code: '40P01' });
      }
    };
    const [run] = await Promise.all([t.client.submit(EchoFlow, 'a'), t.client.submit(EchoFlow, 'b')]);
    expect((await run.steps())[0]?.input).toBe('a');
  });

  it('run in the context of the client, not in that of who submits first (C11)', async () => {
    const storage = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    t.observer = () => void seen.push(storage.getStore());
    await storage.run('request 1', () => t.client.submit(EchoFlow, 1));
    expect(seen.length).toBeGreaterThan(0);
    expect(seen.every((store) => store === undefined)).toBe(true);
  });
});

describe('a connection that breaks', () => {
  /** Ends the connection of the next `times` calls of a name, once they were sent, and lets them fail. */
  function breakCalls(name: string, times: number): void {
    let left = times;
    t.observer = (call, phase, client) => {
      if (call !== name || phase !== 'sent' || left-- <= 0) return;
      (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
    };
  }

  it('leaves the outcome of an unkeyed submit unknown, which the error says; it is not sent again', async () => {
    breakCalls('submit', 1);
    await expect(t.client.submit(EchoFlow, 1)).rejects.toMatchObject({
      code: 'CYCLONE_CONNECTION_LOST',
      outcome: 'unknown',
      operation: 'submit of echo_flow',
    });
    expect(submits()).toHaveLength(1);
    t.reset();
    expect((await t.client.submit(EchoFlow, 2)).created).toBe(true);
  });

  it('is no matter for a keyed submit, which is repeated once', async () => {
    breakCalls('submitOnce', 1);
    const run = await t.client.submitOnce(EchoFlow, 'lost reply', 1);
    const rows = await t.sql(`select id from cyclone_runs where once_key = 'lost reply'`);
    expect(rows).toEqual([{ id: run.id }]);
    expect(submits()).toHaveLength(2);
  });

  /** Lets the server execute every second call of a name, from the first on, and its answer be lost. */
  function loseAnswers(name: string): () => number {
    let calls = 0;
    t.observer = (call, phase, client) => {
      if (call !== name || phase !== 'after' || calls++ % 2 !== 0) return;
      (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
      throw new Error('the connection was cut before the answer came');
    };
    return () => calls;
  }

  it('after the server has made the runs of submitOnce does not hide from their makers that they did, 500 of 500 (F46)', async () => {
    const calls = loseAnswers('submitOnce');
    const stop = t.listen();
    for (let round = 0; round < 50; round++) {
      const runs = await Promise.all(
        Array.from({ length: 10 }, (_, i) => t.client.submitOnce(EchoFlow, `cut ${round} ${i}`, i)),
      );
      expect(runs.map(({ created }) => created)).toEqual(runs.map(() => true));
    }
    stop();
    expect(calls()).toBe(100);
    t.observer = undefined;
    const [{ n }] = await t.sql(`select count(*)::int as n from cyclone_runs where once_key like 'cut %'`);
    expect(n).toBe(500);
    expect(t.events.filter(({ type }) => type === 'submitted')).toHaveLength(500);
    expect((await t.client.submitOnce(EchoFlow, 'cut 0 0', 0)).created).toBe(false);
  });

  it('after the server has made the run of a key that was held tells its maker too (F46)', async () => {
    const runner = t.dataSource.createQueryRunner();
    await runner.startTransaction();
    await t.client.submitOnce(EchoFlow, 'held and cut', 1, { tx: runner });
    const waiting = t.client.submitOnce(EchoFlow, 'held and cut', 1);
    await until(() => submits().length >= 3); // of the transaction, in a batch, alone
    loseAnswers('submitOnce');
    await runner.rollbackTransaction();
    await runner.release();
    expect((await waiting).created).toBe(true);
  });

  it.each<[string, string, () => Promise<unknown>]>([
    ['submit', 'submit', () => t.client.submit(EchoFlow, 'once')],
    ['submitMany', 'submit', () => t.client.submitMany(EchoFlow, ['once'])],
    ['enqueue', 'submit', () => t.client.enqueue(steps.charge, { amount: 1 })],
  ])('after the server has made the run of a %s leaves exactly one (F46)', async (_, call, submit) => {
    const before = await t.sql(`select id from cyclone_runs`);
    loseAnswers(call);
    await expect(submit()).rejects.toMatchObject({ code: 'CYCLONE_CONNECTION_LOST', outcome: 'unknown' });
    expect(await t.sql(`select id from cyclone_runs`)).toHaveLength(before.length + 1);
  });

  it('rejects a keyed submit that fails twice', async () => {
    breakCalls('submitOnce', 2);
    await expect(t.client.submitOnce(EchoFlow, 'lost twice', 1)).rejects.toMatchObject({ outcome: 'unknown' });
    t.reset();
    expect(await t.client.submitOnce(EchoFlow, 'lost twice', 1)).toMatchObject({ id: expect.any(String) });
  });

  it('harms nobody after the server has ended every idle connection (S4)', async () => {
    await Promise.all(Array.from({ length: 5 }, () => t.sql('select 1')));
    const other = await TestClient.open();
    await other.sql(`select pg_terminate_backend(pid) from pg_stat_activity where datname = $1`, [t.database.name]);
    await other.close();
    await until(() => (t.dataSource.driver as unknown as { master: { totalCount: number } }).master.totalCount === 0);
    expect((await t.client.submit(EchoFlow, 3)).created).toBe(true);
  });

  it('that cannot be had within connectTimeoutMS is a typed error which says that nothing happened (F14)', async () => {
    const other = await TestClient.open({ poolSize: 1 });
    await other.sql(`select 1`);
    const pool = (other.dataSource.driver as unknown as { master: { options: object } }).master;
    Object.assign(pool.options, { connectionTimeoutMillis: 50 });
    const runner = other.dataSource.createQueryRunner();
    await runner.connect();
    const cause = expect.objectContaining({
      code: 'CYCLONE_NO_CONNECTION',
      message: expect.stringContaining('poolSize'),
    });
    const rejection = { code: 'CYCLONE_CONNECTION_LOST', outcome: 'nothing', cause };
    await expect(other.client.submit(EchoFlow, 1)).rejects.toMatchObject(rejection);
    await expect(other.client.submitOnce(EchoFlow, 'k', 1)).rejects.toMatchObject(rejection);
    await expect(other.client.submitMany(EchoFlow, [1, 2])).rejects.toMatchObject(rejection);
    await expect(other.operator.cancel('1')).rejects.toMatchObject(rejection);
    await runner.release();
    expect((await other.client.submit(EchoFlow, 1)).created).toBe(true);
    await other.close();
  });
});

describe('a client that closes', () => {
  it.each<[string, () => Promise<unknown>]>([
    ['submit', () => t.otherClient.submit(EchoFlow, 1)],
    ['submitMany', () => t.otherClient.submitMany(EchoFlow, [1, 2])],
    ['submitOnce', () => t.otherClient.submitOnce(EchoFlow, 'closing', 1)],
  ])('waits for a %s that is under way', async (name, submit) => {
    const order: string[] = [];
    let go: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (go = resolve));
    t.observer = (_call, phase) => (phase === 'before' ? gate : undefined);
    const submitted = submit().then(() => order.push('submitted'));
    await until(() => submits().length > 0);
    const closed = t.otherClient.close().then(() => order.push('closed'));
    go();
    await Promise.all([submitted, closed]);
    expect(order).toEqual(['submitted', 'closed']);
  });

  it('waits no longer for a key that another transaction holds', async () => {
    const own = await TestClient.open();
    const runner = own.dataSource.createQueryRunner();
    await runner.startTransaction();
    await own.client.submitOnce(EchoFlow, 'held', 1, { tx: runner });
    const waiting = own.otherClient.submitOnce(EchoFlow, 'held', 1).catch((error: unknown) => error);
    await until(() => own.calls.filter((call) => call === 'submitOnce').length > 2);
    await own.otherClient.close();
    expect(await waiting).toMatchObject({ code: 'CYCLONE_CLIENT_CLOSED' });
    await runner.rollbackTransaction();
    await runner.release();
    await own.close();
  });
});
