import { Readable } from 'node:stream';
import type { StepContext } from '#cyclone/graph/step-context.js';
import { EMPTY, NEVER, concat, defer, from, of, throwError, timer } from 'rxjs';
import { deferred, dropTemplate, Fixture, job, SOON } from './fixture.js';

let fixture: Fixture;
afterAll(dropTemplate);
afterEach(() => fixture.close());

const soon = { policy: { backoff: SOON } };
const action = { ...soon, nodeType: 'action' as const };

describe('a handler that returns an Observable (F6)', () => {
  it('completes with its last value, as a controller does, also when it is the value of a promise', async () => {
    fixture = await Fixture.open();
    let subscribed = 0;
    await fixture
      .worker({
        last: () => from([{ n: 1 }, { n: 2 }]),
        later: async () => concat(timer(1), of('done')),
        none: () => EMPTY,
        act: { action: true, run: () => defer(() => of(void subscribed++)) },
      })
      .start();
    const ids = await fixture.submit(
      ...['last', 'later', 'none'].map((kind) => job(kind)),
      job('act', null, { nodeType: 'action' }),
    );
    await fixture.idle();
    const steps = await fixture.rows(
      'select kind, state, output from cyclone_steps where run_id = any($1) order by 1',
      [ids],
    );
    expect(steps).toEqual([
      { kind: 'act', state: 'completed', output: null },
      { kind: 'last', state: 'completed', output: { n: 2 } },
      { kind: 'later', state: 'completed', output: 'done' },
      { kind: 'none', state: 'completed', output: null },
    ]);
    expect(subscribed).toBe(1);
  });

  it('fails as a promise that rejects', async () => {
    fixture = await Fixture.open();
    await fixture.worker({ fail: () => throwError(() => new Error('declined')) }).start();
    const id = await fixture.submitOne(job('fail', null, { ...soon, maxAttempts: 2 }));
    await fixture.idle();
    expect(await fixture.step(id, 'fail')).toMatchObject({ state: 'discarded', attempt: 2, error: 'declined' });
  });

  it('is unsubscribed when its signal aborts, and the step goes back', async () => {
    fixture = await Fixture.open();
    const [started, unsubscribed] = [deferred(), deferred()];
    const endless = defer(() => {
      started.resolve();
      return NEVER;
    });
    const worker = fixture.worker(
      {
        wait: () => ({
          pipe: () => undefined,
          subscribe(observer: never) {
            const subscription = endless.subscribe(observer);
            subscription.add(() => unsubscribed.resolve());
            return subscription;
          },
        }),
      },
      { shutdownTimeout: 0 },
    );
    await worker.start();
    const id = await fixture.submitOne(job('wait'));
    await started.promise;
    await worker.stop();
    await unsubscribed.promise;
    expect(await fixture.step(id, 'wait')).toMatchObject({ state: 'available', attempt: 1 });
  });
});

describe('a handler that returns work in place of its result (F6)', () => {
  let ran = 0;
  function* generator(): Generator<number> {
    yield ran++;
  }
  async function* asyncGenerator(): AsyncGenerator<number> {
    yield ran++;
  }

  it.each<[string, (input: never, ctx: StepContext) => unknown, RegExp]>([
    ['a generator', generator, /generator, whose body has not run/],
    ['an async generator', asyncGenerator, /generator, whose body has not run/],
    ['an iterator', () => [1].values(), /iterable/],
    ['a stream of Node', () => Readable.from(['x']), /stream, which has not been read/],
    ['a stream of the web', async () => new Response('x').body, /stream, which has not been read/],
  ])('is discarded for good, step or action: %s', async (_name, run, problem) => {
    fixture = await Fixture.open();
    await fixture.worker({ step: run, act: { action: true, run } }).start();
    const [step, act] = await fixture.submit(job('step', null, soon), job('act', null, action));
    await fixture.idle();
    for (const [id, node] of [
      [step, 'step'],
      [act, 'act'],
    ] as const) {
      expect(await fixture.step(id as string, node)).toMatchObject({
        state: 'discarded',
        attempt: 1,
        error_kind: 'permanent',
        error: expect.stringMatching(problem),
      });
    }
    expect(ran).toBe(0);
  });

  it('is discarded for good with the place of what JSON loses (F5)', async () => {
    fixture = await Fixture.open();
    await fixture
      .worker({
        settle: () => Promise.allSettled([Promise.reject(new Error('declined')), Promise.resolve(1)]),
        fetched: async () => new Response('{}'),
      })
      .start();
    const [settle, fetched] = await fixture.submit(job('settle', null, soon), job('fetched', null, soon));
    await fixture.idle();
    expect(await fixture.step(settle as string, 'settle')).toMatchObject({
      state: 'discarded',
      attempt: 1,
      error_kind: 'permanent',
      error: expect.stringMatching(/output\[0\]\.reason is an Error.*error\.message/),
    });
    expect(await fixture.step(fetched as string, 'fetched')).toMatchObject({
      state: 'discarded',
      error: expect.stringMatching(/output is a Response.*response\.json\(\)/),
    });
  });
});
