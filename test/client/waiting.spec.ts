import { RunWatcher, untilNextLook } from '#cyclone/client/run-watcher.js';
import { Discard, TestClient, until } from './fixture.js';
import { EchoFlow, Pay, steps } from './workflows.js';

let t: TestClient;
beforeAll(async () => {
  t = await TestClient.open();
});
afterAll(() => t.close());
beforeEach(() => t.reset());

const looks = () => t.calls.filter((call) => call === 'runStates' || call === 'runOutcomes');

describe('waiting for runs', () => {
  it('resolves for a run that has ended already', async () => {
    const run = await t.client.submit(EchoFlow, { a: 1 });
    await t.work(() => ({ b: 2 }));
    t.reset();
    expect(await t.client.run(run.id, EchoFlow).result()).toEqual({ b: 2 });
    expect(await t.client.run(run.id).wait()).toBe('completed');
  });

  it('resolves at once when this process ends the run, and reads the result from the database', async () => {
    const run = await t.client.submit(EchoFlow, 1);
    const result = run.result();
    const state = run.wait();
    await until(() => looks().length > 0);
    await t.work(() => 'done');
    expect(await state).toBe('completed');
    expect(await result).toBe('done');
  });

  it('notices a run that another process ends', async () => {
    const run = await t.client.submit(EchoFlow, 1);
    const result = run.result({ timeout: '30s' });
    await until(() => looks().length > 0);
    await t.work(() => 'elsewhere', false);
    expect(await result).toBe('elsewhere');
  });

  it('asks one query at a time for 1,000 runs, whoever waits and however many', async () => {
    const runs = await t.client.enqueueMany(
      steps.charge,
      Array.from({ length: 1_000 }, (_, amount) => ({ amount })),
    );
    let atOnce = 0;
    let most = 0;
    t.reset();
    t.observer = (call, phase) => {
      if (!call.startsWith('run')) return;
      if (phase === 'before') most = Math.max(most, ++atOnce);
      if (phase === 'after') atOnce--;
    };
    const results = runs.map((run) => run.result());
    const states = runs.map((run) => run.wait());
    await until(() => looks().length >= 3);
    expect(most).toBe(1);
    expect(looks()[0]).toBe('runStates');
    await t.work(({ input }) => ({ paid: JSON.parse(input ?? '').amount }));
    expect(await Promise.all(results)).toEqual(Array.from({ length: 1_000 }, (_, paid) => ({ paid })));
    expect(new Set(await Promise.all(states))).toEqual(new Set(['completed']));
    expect(most).toBe(1);
    // 1,000 outcomes in portions of 32, and looks that grow rarer; far from one for each waiter.
    expect(looks().length).toBeLessThan(100);
  });

  it('looks less often the longer nobody new has come', () => {
    const delays = [0, 100, 400, 1_000, 4_000, 1e9].map((since) => untilNextLook(since));
    expect(delays).toEqual([25, 25, 100, 250, 1_000, 1_000]);
  });

  it('does nothing when nobody waits', async () => {
    const run = await t.client.submit(EchoFlow, 1);
    const waiting = run.wait();
    await until(() => looks().length >= 3);
    await run.cancel();
    expect(await waiting).toBe('cancelled');
    expect(t.engine.events.active).toBe(false);
    const { length } = looks();
    await t.sql(`select pg_sleep(0.2)`);
    expect(looks()).toHaveLength(length);
  });

  it('is told at once of an end in this process and of whoever comes, however rarely it looks', async () => {
    const hour = 3_600_000;
    const watcher = new RunWatcher(t.engine, { warn() {} }, { shortestMs: hour, longestMs: hour });
    const [inside, later] = await t.client.submitMany(EchoFlow, [1, 2]);
    if (!inside || !later) throw new Error('two were submitted');
    const outcome = watcher.outcome(inside.id);
    const state = watcher.state(inside.id);
    await until(() => looks().length === 1);
    await t.work(() => 'now');
    expect(await outcome).toMatchObject({ state: 'completed', output: '"now"' });
    expect(await state).toBe('completed');
    const idle = watcher.state((await t.client.submit(EchoFlow, 3)).id);
    await until(() => looks().length === 3);
    expect(await watcher.state(later.id)).toBe('completed');
    expect(looks()).toEqual(['runStates', 'runOutcomes', 'runStates', 'runStates']);
    await t.work();
    await idle;
    await watcher.close();
  });

  it('gives up after the timeout, which leaves the run and the other waiters alone', async () => {
    const run = await t.client.submit(EchoFlow, 1);
    const patient = run.wait();
    await expect(run.wait({ timeout: 60 })).rejects.toMatchObject({
      code: 'CYCLONE_WAIT_TIMEOUT',
      runId: run.id,
      timeoutMs: 60,
    });
    await expect(run.result({ timeout: '30ms' })).rejects.toMatchObject({ code: 'CYCLONE_WAIT_TIMEOUT' });
    await expect(run.wait({ timeout: -1 })).rejects.toMatchObject({ option: 'timeout' });
    await t.work();
    expect(await patient).toBe('completed');
  });

  it('ends with the reason of an aborted signal, and leaves no listener behind', async () => {
    const run = await t.client.submit(EchoFlow, 1);
    const controller = new AbortController();
    const added = listenersOf(controller.signal);
    const waiting = run.wait({ signal: controller.signal });
    const reason = new Error('the request ended');
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(run.result({ signal: controller.signal })).rejects.toBe(reason);
    expect(added()).toBe(0);
    expect(t.engine.events.active).toBe(false);
    const other = new AbortController();
    const left = listenersOf(other.signal);
    const state = run.wait({ signal: other.signal });
    await run.cancel();
    await state;
    expect(left()).toBe(0);
  });

  it('rejects for a run that does not exist', async () => {
    const unknown = t.client.run('9223372036854775807');
    const rejection = { code: 'CYCLONE_RUN_NOT_FOUND', runId: '9223372036854775807' };
    await expect(unknown.wait()).rejects.toMatchObject(rejection);
    await expect(unknown.result()).rejects.toMatchObject(rejection);
    await expect(unknown.info()).rejects.toMatchObject(rejection);
    await expect(unknown.steps()).rejects.toMatchObject(rejection);
  });

  it('goes on after a retry: a reopened run has not ended', async () => {
    const run = await t.client.submit(EchoFlow, 1);
    await t.work(() => new Discard('no'));
    expect(await run.wait()).toBe('failed');
    await t.operator.retryAll(run.id);
    const result = run.result();
    await until(() => looks().length > 0);
    await t.work(() => 'second time');
    expect(await result).toBe('second time');
  });

  it('survives the loss of its connections, tells of it once, and goes on (R21, S38)', async () => {
    const run = await t.client.submit(EchoFlow, 1);
    let broken = 3;
    t.observer = (call, phase, client) => {
      if (call !== 'runStates' || phase !== 'sent' || broken-- <= 0) return;
      (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
    };
    const waiting = run.wait({ timeout: '30s' });
    await until(() => broken <= 0);
    await t.work(() => 1, false);
    expect(await waiting).toBe('completed');
    expect(t.warnings).toEqual([expect.stringContaining('Waiting for runs is interrupted')]);
  });

  it('tells its waiters what no waiting can heal', async () => {
    const run = await t.client.submit(EchoFlow, 1);
    t.observer = (call, phase) => {
      if (call === 'runStates' && phase === 'before') {
        throw Object.assign(new Error('relation does not exist'), { code: '42P01' });
      }
    };
    await expect(run.wait()).rejects.toMatchObject({ code: 'CYCLONE_DATABASE', sqlState: '42P01' });
  });

  it('reads large ids as they are (S62)', async () => {
    await t.sql(`select setval('cyclone_runs_id_seq', 9007199254740992)`);
    const run = await t.client.submit(Pay, { amount: 1 });
    expect(run.id).toBe('9007199254740993');
    expect((await run.info()).id).toBe('9007199254740993');
    expect((await run.steps())[0]?.run_id).toBe('9007199254740993');
    await run.pause();
    await run.resume();
    const waiting = t.client.run('9007199254740993').wait();
    await run.cancel();
    expect(await waiting).toBe('cancelled');
    const [row] = await t.sql(`select id::text from cyclone_runs where state = 'cancelled' order by id desc limit 1`);
    expect(row.id).toBe('9007199254740993');
  });

  it('ends when the client is closed', async () => {
    const run = await t.otherClient.submit(EchoFlow, 1);
    const waiting = [run.wait(), run.result()];
    const closed = Promise.all(
      waiting.map((wait) => expect(wait).rejects.toMatchObject({ code: 'CYCLONE_CLIENT_CLOSED' })),
    );
    await t.otherClient.close();
    await closed;
    await expect(run.wait()).rejects.toMatchObject({ code: 'CYCLONE_CLIENT_CLOSED' });
    expect((await t.otherClient.submit(EchoFlow, 2)).created).toBe(true);
  });
});

/** Counts the abort listeners that are added to a signal and not removed. */
function listenersOf(signal: AbortSignal): () => number {
  let count = 0;
  const { addEventListener, removeEventListener } = signal;
  Object.assign(signal, {
    addEventListener(...args: Parameters<AbortSignal['addEventListener']>) {
      count++;
      return addEventListener.apply(signal, args);
    },
    removeEventListener(...args: Parameters<AbortSignal['removeEventListener']>) {
      count--;
      return removeEventListener.apply(signal, args);
    },
  });
  return () => count;
}
