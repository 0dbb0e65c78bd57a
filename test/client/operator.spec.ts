import { Discard, TestClient, until } from './fixture.js';
import { leaseMark } from '#cyclone/store/lease.js';
import { EchoFlow, Pay, steps } from './workflows.js';

let t: TestClient;
beforeAll(async () => {
  t = await TestClient.open();
});
afterAll(() => t.close());
beforeEach(() => t.reset());

const states = async (id: string) =>
  Object.fromEntries((await t.operator.steps(id)).map(({ node, state }) => [node, state]));

/** Claims everything that is due, and leaves it running. */
async function claim(): Promise<{ runId: string; node: string; generation: number }[]> {
  const rows = await t.engine.connections.use((session) =>
    t.engine.store.flush(session, {
      owner: 'worker',
      leaseMs: 30_000,
      completions: [],
      queues: [{ queue: 'default', slots: 100 }],
      kinds: ['echo'],
      maxBytes: 4_194_304,
    }),
  );
  return rows.filter(({ event }) => event === 'claimed');
}

describe('cancel (R24)', () => {
  it('cancels everything open, tells the events and every process (R28)', async () => {
    const run = await t.client.submit(Pay, { amount: 1 });
    const stop = t.listen();
    await t.operator.cancel(run.id, { reason: 'a reason' });
    stop();
    expect(await states(run.id)).toEqual({ charge: 'cancelled', last: 'cancelled', notify: 'cancelled' });
    expect(await run.info()).toMatchObject({ state: 'cancelled', cancelReason: 'a reason' });
    expect(t.events.map(({ type }) => type).toSorted()).toEqual([
      'cancelled',
      'cancelled',
      'cancelled',
      'run_cancelled',
    ]);
    expect(t.cancelled).toEqual([run.id]);
  });

  it('refuses a run that has ended, and changes nothing', async () => {
    const run = await t.client.submit(EchoFlow, 1);
    await run.cancel();
    const before = await run.info();
    await expect(run.cancel()).rejects.toMatchObject({
      code: 'CYCLONE_ALREADY_TERMINAL',
      runId: run.id,
      state: 'cancelled',
    });
    await expect(run.pause()).rejects.toMatchObject({ code: 'CYCLONE_ALREADY_TERMINAL', state: 'cancelled' });
    expect(await run.info()).toEqual(before);
  });

  it('ends the completion transaction of a step that was running (C3)', async () => {
    const run = await t.client.submit(EchoFlow, 1);
    const [lease] = await claim();
    const stuck = await t.engine.connections.hold();
    await stuck.session.script(
      'begin',
      `begin; select set_config('application_name', '${leaseMark('public', lease as never)}', true)`,
    );
    const gone = new Promise((resolve) => stuck.session.client.on('end', resolve as never));
    await run.cancel();
    await gone;
    await stuck.release(true);
    expect(t.calls).toContain('cyclone_end_backends');
  });

  it('succeeds although those transactions cannot be ended', async () => {
    const run = await t.client.submit(EchoFlow, 1);
    await claim();
    t.observer = (call, phase) => {
      if (call === 'cyclone_end_backends' && phase === 'before') throw new Error('no connection');
    };
    await run.cancel();
    expect(t.warnings).toEqual([expect.stringContaining('no connection')]);
    expect(await run.wait()).toBe('cancelled');
  });
});

describe('pause and resume (R26)', () => {
  it('stop new work and let it go on, waking whoever may execute it', async () => {
    const run = await t.client.submit(Pay, { amount: 1 });
    t.reset();
    const stop = t.listen();
    await run.pause();
    await run.pause();
    expect(await states(run.id)).toMatchObject({ charge: 'paused', last: 'pending' });
    expect(t.woken).toEqual([]);
    await run.resume();
    stop();
    expect(await states(run.id)).toMatchObject({ charge: 'available' });
    expect(t.woken).toEqual(['orders']);
    expect(t.events.map(({ type }) => type)).toEqual(['paused', 'run_paused', 'resumed', 'run_resumed']);
    await expect(run.resume()).rejects.toMatchObject({ code: 'CYCLONE_NOT_PAUSED', state: 'running' });
  });
});

describe('retry (R25)', () => {
  it('reopens one discarded node with more attempts, and wakes its queue', async () => {
    const run = await t.client.submit(EchoFlow, 1);
    await t.work(() => new Discard('no'));
    t.reset();
    const stop = t.listen();
    await t.operator.retry(run.id, 'echo', { additionalAttempts: 3, reason: 'fixed' });
    stop();
    const [step] = await run.steps();
    expect(step).toMatchObject({ state: 'available', attempt: 2, max_attempts: 8, error: null });
    expect(t.woken).toEqual(['default']);
    expect(t.events.map(({ type }) => type)).toEqual(['reopened', 'run_reopened']);
    await t.work(() => 'ok');
    expect(await run.result()).toBe('ok');
  });

  it('reopens all of a failed run', async () => {
    const run = await t.client.submit(EchoFlow, 1);
    await t.work(() => new Discard('no'));
    await t.operator.retryAll(run.id);
    expect((await run.info()).state).toBe('running');
  });

  it('refuses what cannot be retried, each with its own error, and changes nothing', async () => {
    const running = await t.client.submit(Pay, { amount: 1 });
    await expect(t.operator.retryAll(running.id)).rejects.toMatchObject({
      code: 'CYCLONE_NOT_RETRYABLE',
      reason: 'the run is running',
    });
    await expect(t.operator.retry(running.id, 'nowhere')).rejects.toMatchObject({
      code: 'CYCLONE_NODE_NOT_FOUND',
      runId: running.id,
      node: 'nowhere',
    });
    await expect(t.operator.retry(running.id, 'no\u0000de')).rejects.toMatchObject({ code: 'CYCLONE_NODE_NOT_FOUND' });
    const child = await t.client.submit(EchoFlow, 1);
    await t.sql(`update cyclone_runs set parent_run_id = $1, parent_node = 'child' where id = $2`, [
      running.id,
      child.id,
    ]);
    await expect(t.operator.retryAll(child.id)).rejects.toMatchObject({
      code: 'CYCLONE_CHILD_NOT_RETRYABLE',
      rootRunId: running.id,
    });
    await running.cancel();
    const failed = await t.client.submit(Pay, { amount: 1 });
    await t.sql(`update cyclone_steps set max_attempts = 1 where run_id = $1`, [failed.id]);
    await t.work(({ node }) => (node === 'charge' ? { paid: 1 } : new Discard('no')));
    expect(await failed.wait()).toBe('failed');
    await expect(t.operator.retry(failed.id, 'charge')).rejects.toMatchObject({
      reason: 'node "charge" is completed',
      node: 'charge',
    });
  });

  it.each([{ additionalAttempts: -1 }, { additionalAttempts: 1.5 }, { additionalAttempts: '3' }, { reason: 5 }])(
    'refuses the options %j',
    async (options) => {
      await expect(t.operator.retryAll('1', options as never)).rejects.toMatchObject({
        code: 'CYCLONE_INVALID_OPTION',
      });
      expect(t.calls).toEqual([]);
    },
  );
});

describe('every operation', () => {
  const operations: [string, (id: never) => unknown][] = [
    ['cancel', (id) => t.operator.cancel(id)],
    ['pause', (id) => t.operator.pause(id)],
    ['resume', (id) => t.operator.resume(id)],
    ['retry', (id) => t.operator.retry(id, 'a')],
    ['retryAll', (id) => t.operator.retryAll(id)],
    ['steps', (id) => t.operator.steps(id)],
    ['run', async (id) => t.client.run(id).info()],
  ];

  it.each(operations)(
    '%s tells ids that no run can have, without asking the database (S62, S81)',
    async (_name, operation) => {
      for (const id of ['abc', '', '1.0', `1' or '1'='1`, 42, 42n, null, undefined]) {
        await expect(operation(id as never)).rejects.toMatchObject({ code: 'CYCLONE_INVALID_OPTION', option: 'runId' });
      }
      for (const id of ['-1', '0', '9223372036854775808']) {
        await expect(operation(id as never)).rejects.toMatchObject({ code: 'CYCLONE_RUN_NOT_FOUND', runId: id });
      }
      expect(t.calls).toEqual([]);
      await expect(operation('9223372036854775807' as never)).rejects.toMatchObject({ code: 'CYCLONE_RUN_NOT_FOUND' });
    },
  );

  it.each(['40P01', '40001', '55P03'])('is made again when it lost a conflict: %s (S9)', async (code) => {
    const run = await t.client.submit(EchoFlow, 1);
    let failures = 0;
    t.observer = (call, phase) => {
      if (call === 'cyclone_cancel' && phase === 'before' && failures++ < 3)
        throw Object.assign(new Error('conflict'), { code });
    };
    await run.cancel();
    expect(await run.wait()).toBe('cancelled');
    expect(failures).toBe(4);
  });

  it('gives up after some conflicts, and at once after another error', async () => {
    const run = await t.client.submit(EchoFlow, 1);
    t.observer = (call, phase) => {
      if (phase !== 'before') return;
      if (call === 'cyclone_pause') throw Object.assign(new Error('conflict'), { code: '40P01' });
      if (call === 'cyclone_cancel') throw Object.assign(new Error('no such table'), { code: '42P01' });
    };
    await expect(run.pause()).rejects.toMatchObject({ sqlState: '40P01', transient: true });
    expect(t.calls.filter((call) => call === 'cyclone_pause')).toHaveLength(5);
    await expect(run.cancel()).rejects.toMatchObject({ sqlState: '42P01', transient: false });
    expect(t.calls.filter((call) => call === 'cyclone_cancel')).toHaveLength(1);
  });

  it('says that its outcome is unknown when the connection breaks', async () => {
    const run = await t.client.submit(EchoFlow, 1);
    t.observer = (call, phase, client) => {
      if (call !== 'cyclone_cancel' || phase !== 'sent') return;
      (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
    };
    await expect(run.cancel()).rejects.toMatchObject({
      code: 'CYCLONE_CONNECTION_LOST',
      outcome: 'unknown',
      operation: `cancel of run ${run.id}`,
    });
  });

  it('has no deadlocks when many act on the same runs at once (S9)', async () => {
    const runs = await t.client.enqueueMany(
      steps.notify,
      Array.from({ length: 5 }, () => 'x'),
    );
    const expected = /CYCLONE_(ALREADY_TERMINAL|NOT_PAUSED|NOT_RETRYABLE)/;
    await Promise.all(
      Array.from({ length: 10 }, async (_, worker) => {
        for (let i = 0; i < 12; i++) {
          const run = runs[(worker + i) % runs.length] as (typeof runs)[0];
          const act = [run.pause, run.resume, () => t.operator.retryAll(run.id), i > 9 ? run.cancel : run.pause][i % 4];
          await Promise.resolve(act?.call(run)).catch((error: { code: string }) =>
            expect(error.code).toMatch(expected),
          );
        }
      }),
    );
    await until(async () => (await t.sql(`select 1 from pg_locks where not granted`)).length === 0);
    const [{ deadlocks }] = await t.sql(
      `select deadlocks::int from pg_stat_database where datname = current_database()`,
    );
    expect(deadlocks).toBe(0);
  });
});
