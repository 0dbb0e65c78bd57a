import { TestClient, until } from './fixture.js';
import { EchoFlow, Pay, Wide } from './workflows.js';

let t: TestClient;
beforeAll(async () => {
  t = await TestClient.open();
});
afterAll(() => t.close());
beforeEach(() => t.reset());

describe('submitOnce (R7)', () => {
  it('makes one run for 50 concurrent callers in two processes, and tells one of them so', async () => {
    const runs = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        (i % 2 ? t.client : t.otherClient).submitOnce(EchoFlow, 'order-1', { a: 1, b: 2 }),
      ),
    );
    expect(new Set(runs.map(({ id }) => id)).size).toBe(1);
    expect(runs.filter(({ created }) => created)).toHaveLength(1);
    const [{ n }] = await t.sql(`select count(*)::int as n from cyclone_steps`);
    expect(n).toBe(1);
  });

  it('keeps keys of different workflows apart', async () => {
    const runs = await Promise.all([
      t.client.submitOnce(EchoFlow, 'shared', 1),
      t.client.submitOnce(Pay, 'shared', { amount: 1 }),
    ]);
    expect(runs.map(({ created }) => created)).toEqual([true, true]);
  });

  it('gives back a run in whatever state', async () => {
    const run = await t.client.submitOnce(EchoFlow, 'gone', 1);
    await run.cancel();
    const again = await t.client.submitOnce(EchoFlow, 'gone', 1);
    expect(again).toMatchObject({ id: run.id, created: false });
    expect(await again.wait()).toBe('cancelled');
  });

  it('ignores another input and logs it, without the input; the order of properties is no difference', async () => {
    const run = await t.client.submitOnce(EchoFlow, 'input', { a: 1, b: { c: 2, d: 3 } });
    await t.client.submitOnce(EchoFlow, 'input', { b: { d: 3, c: 2 }, a: 1 });
    expect(t.warnings).toEqual([]);
    const again = await t.client.submitOnce(EchoFlow, 'input', { secret: 'canary' });
    expect(again).toMatchObject({ id: run.id, created: false });
    expect(t.warnings).toEqual([expect.stringContaining(`key "input" found run ${run.id}`)]);
    expect(t.warnings[0]).not.toContain('canary');
    expect((await again.steps())[0]?.input).toEqual({ a: 1, b: { c: 2, d: 3 } });
  });

  it('wakes and emits for the run that it made only', async () => {
    const stop = t.listen();
    await t.client.submitOnce(Pay, 'told', { amount: 1 });
    await t.client.submitOnce(Pay, 'told', { amount: 1 });
    stop();
    expect(t.woken).toEqual(['orders']);
    expect(t.events.map(({ type }) => type)).toEqual(['run_submitted', 'submitted', 'submitted', 'submitted']);
  });

  it('waits while another transaction holds the key, and lets other keys pass', async () => {
    const runner = t.dataSource.createQueryRunner();
    await runner.startTransaction();
    const held = await t.client.submitOnce(EchoFlow, 'held', 1, { tx: runner });
    const waiting = Promise.all([t.client.submitOnce(EchoFlow, 'held', 1), t.client.submitOnce(EchoFlow, 'free', 1)]);
    expect((await t.client.submitOnce(EchoFlow, 'later', 1)).created).toBe(true);
    await until(() => t.calls.filter((call) => call === 'submitOnce').length >= 4);
    await runner.commitTransaction();
    await runner.release();
    const [second, free] = await waiting;
    expect(second).toMatchObject({ id: held.id, created: false });
    expect(free.created).toBe(true);
  });

  it('makes the run itself when the transaction that held the key rolls back', async () => {
    const runner = t.dataSource.createQueryRunner();
    await runner.startTransaction();
    const undone = await t.client.submitOnce(EchoFlow, 'undone', 1, { tx: runner });
    const waiting = t.client.submitOnce(EchoFlow, 'undone', 1);
    await until(() => t.calls.filter((call) => call === 'submitOnce').length >= 2);
    await runner.rollbackTransaction();
    await runner.release();
    const run = await waiting;
    expect(run.created).toBe(true);
    expect(run.id).not.toBe(undone.id);
  });

  it('has no deadlocks between batches with the same keys in opposite order (C7)', async () => {
    const keys = Array.from({ length: 40 }, (_, i) => `sorted ${i}`);
    const clients = [t.client, t.otherClient];
    const runs = await Promise.all(
      clients.flatMap((client, i) =>
        (i === 0 ? keys : keys.toReversed()).map((key) => client.submitOnce(Wide, key, 20)),
      ),
    );
    expect(new Set(runs.map(({ id }) => id)).size).toBe(40);
    expect(runs.filter(({ created }) => created)).toHaveLength(40);
    const [{ deadlocks }] = await t.sql(
      `select deadlocks::int from pg_stat_database where datname = current_database()`,
    );
    expect(deadlocks).toBe(0);
  });

  it.each(['', 'x'.repeat(513), 'a\u0000', 5, undefined])('refuses %p as a key', async (key) => {
    await expect(t.client.submitOnce(EchoFlow, key as never, 1)).rejects.toMatchObject({ option: 'key' });
    expect(t.calls).toEqual([]);
  });
});
