import type { StepContext } from '#cyclone/graph/step-context.js';
import { PermanentError, RetryAfterError } from '#cyclone/model/errors/index.js';
import { chain, deferred, dropTemplate, Fixture, graph, job, SOON } from './fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

const soon = { policy: { backoff: SOON } };

describe('a handler that fails', () => {
  it('is tried again with attempt + 1 until its attempts are used up, and the last failure adds nothing (R11, R15)', async () => {
    fixture = await Fixture.open();
    const attempts: number[] = [];
    await fixture
      .worker({
        work: (_: unknown, ctx) => {
          attempts.push(ctx.attempt);
          throw new Error(`attempt ${ctx.attempt}`);
        },
      })
      .start();
    const id = await fixture.submitOne(job('work', null, { ...soon, maxAttempts: 3 }));
    await fixture.idle();
    expect(attempts).toEqual([1, 2, 3]);
    expect(await fixture.step(id, 'work')).toMatchObject({
      state: 'discarded',
      attempt: 3,
      error: 'attempt 3',
      error_kind: 'retryable',
      panic_stack: null,
    });
    expect(fixture.typesOf(id)).toEqual([
      'claimed',
      'retried',
      'claimed',
      'retried',
      'claimed',
      'discarded',
      'run_failed',
    ]);
  });

  it.each([
    ['a PermanentError', () => new PermanentError('never'), 'never', null],
    [
      'a fault of the program (R16)',
      () => new TypeError('x is not a function'),
      'handler panicked: TypeError: x is not a function',
      expect.any(String),
    ],
    ['a string (S15)', () => 'boom', 'handler panicked: boom', expect.any(String)],
    ['an object (S15)', () => ({ code: 1 }), 'handler panicked: {"code":1}', expect.any(String)],
    ['nothing at all', () => undefined, 'handler panicked: undefined', expect.any(String)],
  ])('that throws %s leaves its error on the step', async (_, make, error, stack) => {
    fixture = await Fixture.open();
    await fixture
      .worker({
        work: () => {
          throw make();
        },
      })
      .start();
    const id = await fixture.submitOne(job('work', null, { maxAttempts: 1 }));
    await fixture.idle();
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'discarded', attempt: 1, error, panic_stack: stack });
  });

  it('that throws a PermanentError is called once (R15)', async () => {
    fixture = await Fixture.open();
    let calls = 0;
    await fixture
      .worker({
        work: () => {
          calls++;
          throw new PermanentError('never');
        },
      })
      .start();
    const id = await fixture.submitOne(job('work', null, soon));
    await fixture.idle();
    expect(calls).toBe(1);
    expect(await fixture.step(id, 'work')).toMatchObject({ error_kind: 'permanent' });
  });

  it.each([
    ['a BigInt', () => ({ a: 1n })],
    [
      'a cycle',
      () => {
        const a: Record<string, unknown> = {};
        a['a'] = a;
        return a;
      },
    ],
    ['a symbol', () => Symbol('x')],
    ['a U+0000 (S8)', () => 'a\u0000b'],
    [
      'a throwing toJSON',
      () => ({
        toJSON: () => {
          throw new Error('mine');
        },
      }),
    ],
    ['too much', () => 'x'.repeat(2_000_000)],
  ])('returns %s and is discarded after one call (S7)', async (_, make) => {
    fixture = await Fixture.open();
    let calls = 0;
    await fixture
      .worker({
        work: () => {
          calls++;
          return make();
        },
      })
      .start();
    const id = await fixture.submitOne(job('work', null, soon));
    await fixture.idle();
    expect(calls).toBe(1);
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'discarded', error_kind: 'permanent', attempt: 1 });
  });

  it('says itself when to try again with RetryAfterError, and is charged (R15)', async () => {
    fixture = await Fixture.open();
    await fixture
      .worker({
        work: (_: unknown, ctx) => {
          if (ctx.attempt === 1) throw new RetryAfterError('1h', 'come back later');
        },
      })
      .start();
    const id = await fixture.submitOne(job('work', null, soon));
    await fixture.until(`select attempt = 2 from cyclone_steps where run_id = $1`, [id]);
    const [row] = await fixture.rows(
      `select state, error, scheduled_at > now() + interval '59 min' as later from cyclone_steps where run_id = $1`,
      [id],
    );
    expect(row).toEqual({ state: 'available', error: 'come back later', later: true });
  });

  it('snoozes without a charged attempt, and its transaction rolls back (S73)', async () => {
    fixture = await Fixture.open();
    let calls = 0;
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          const tx = await ctx.completionTx();
          await tx.query('insert into ledger values ($1, $2, 1)', [ctx.runId, ctx.node]);
          if (++calls <= 10) ctx.snooze(1);
        },
      })
      .start();
    const id = await fixture.submitOne(job('work', null, { maxAttempts: 3 }));
    await fixture.idle();
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'completed', attempt: 1, lease_generation: 11 });
    expect(fixture.stepEvents('snoozed')).toHaveLength(10);
    expect(await fixture.rows('select * from ledger')).toHaveLength(1);
  });

  it('waits as long as its backoff function says; one that throws lets the default apply (C16)', async () => {
    fixture = await Fixture.open();
    const asked: unknown[] = [];
    await fixture
      .worker({
        work: {
          run: (_: unknown, ctx: StepContext) => {
            if (ctx.attempt === 1) throw new Error('first');
          },
          options: {
            retry: {
              backoff: (attempt, error) => {
                asked.push([attempt, (error as Error).message]);
                return 7_200_000;
              },
            },
          },
        },
        wrong: {
          run: () => {
            throw new Error('first');
          },
          options: {
            retry: {
              backoff: () => {
                throw new Error('no idea');
              },
            },
          },
        },
      })
      .start();
    const [id, wrong] = await fixture.submit(job('work'), job('wrong'));
    await fixture.until(`select count(*) = 2 from cyclone_steps where attempt >= 2`);
    const [row] = await fixture.rows(
      `select scheduled_at > now() + interval '1 hour' as later from cyclone_steps where run_id = $1`,
      [id],
    );
    expect(row).toEqual({ later: true });
    expect(asked).toEqual([[1, 'first']]);
    const [other] = await fixture.rows(
      `select scheduled_at < now() + interval '1 min' as soon from cyclone_steps where run_id = $1`,
      [wrong],
    );
    expect(other).toEqual({ soon: true });
    expect(fixture.log.join()).toContain('no idea');
  });

  it('waits by the backoff of its node, which wins over the function of its handler, however it was claimed (R9)', async () => {
    fixture = await Fixture.open();
    await fixture
      .worker({
        work: {
          run: (_: unknown, ctx: StepContext) => {
            if (ctx.attempt === 1) throw new Error('first');
          },
          options: { retry: { backoff: () => 7_200_000 } },
        },
      })
      .start();
    const { nodes, deps } = chain(['work', 'work']);
    const own = nodes.map((node) => ({ ...node, policy: { backoff: SOON } }));
    await fixture.submit(graph(own, deps));
    await fixture.idle();
    expect(await fixture.rows('select distinct attempt from cyclone_steps')).toEqual([{ attempt: 2 }]);
  });

  it('fails its run at once and aborts the other handlers of the run (S55, R23)', async () => {
    fixture = await Fixture.open();
    const aborted = deferred<string>();
    const started = deferred();
    await fixture
      .worker({
        slow: (_: unknown, ctx) =>
          new Promise((_resolve, reject) => {
            ctx.signal.addEventListener('abort', () => {
              aborted.resolve((ctx.signal.reason as { code: string }).code);
              reject(ctx.signal.reason as Error);
            });
            started.resolve();
          }),
        bad: async () => {
          await started.promise;
          throw new PermanentError('bad');
        },
      })
      .start();
    const node = (kind: string): ReturnType<typeof job>['nodes'][0] =>
      job(kind).nodes[0] as ReturnType<typeof job>['nodes'][0];
    const id = await fixture.submitOne(graph([node('slow'), node('bad')]));
    expect(await aborted.promise).toBe('CYCLONE_LEASE_LOST');
    await fixture.idle();
    expect(await fixture.step(id, 'slow')).toMatchObject({ state: 'cancelled' });
    expect(fixture.typesOf(id, 'slow')).toEqual(['claimed', 'cancelled', 'lease_lost']);
  });

  it('survives a listener of the signal that throws or rejects (C12)', async () => {
    fixture = await Fixture.open();
    const called: string[] = [];
    await fixture
      .worker({
        work: (_: unknown, ctx) =>
          new Promise<void>((resolve) => {
            ctx.signal.addEventListener('abort', () => {
              called.push('throws');
              throw new Error('thrown by a listener');
            });
            ctx.signal.addEventListener('abort', () => Promise.reject(new Error('rejected by a listener')));
            // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the other way to listen, which must be safe too
            ctx.signal.onabort = () => {
              called.push('onabort');
              resolve();
              throw new Error('thrown by onabort');
            };
            const removed = (): void => void called.push('removed');
            ctx.signal.addEventListener('abort', removed);
            ctx.signal.removeEventListener('abort', removed);
          }),
      })
      .start();
    await fixture.submitOne(job('work', null, { policy: { timeoutMs: 50 }, maxAttempts: 1 }));
    await fixture.idle();
    expect(called).toEqual(['throws', 'onabort']);
  });

  it('never writes a query parameter into the error (S17)', async () => {
    fixture = await Fixture.open();
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          const tx = await ctx.completionTx();
          await tx.query('select $1::int', ['canary-4711']);
        },
      })
      .start();
    const id = await fixture.submitOne(job('work', null, { maxAttempts: 1 }));
    await fixture.idle();
    const { error } = await fixture.step(id, 'work');
    expect(error).toContain('invalid input syntax');
    expect(String(error) + fixture.log.join()).not.toContain('canary');
  });

  it('survives listeners of events that throw (S48)', async () => {
    fixture = await Fixture.open();
    fixture.engine.events.subscribe(() => {
      throw new Error('hook');
    });
    await fixture.worker({ work: () => 1 }).start();
    await fixture.submit(job('work'), job('work'));
    await fixture.idle();
    expect(fixture.stepEvents('completed')).toHaveLength(2);
  });
});
