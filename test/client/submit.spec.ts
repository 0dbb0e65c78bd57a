import { InvalidGraphError, InvalidPayloadError } from '#cyclone/model/errors/index.js';
import { Discard, TestClient } from './fixture.js';
import { EchoFlow, Order, Pay, PlaceOrder, steps, Steps, Tell, Wide } from './workflows.js';

let t: TestClient;
beforeAll(async () => {
  t = await TestClient.open();
});
afterAll(() => t.close());
beforeEach(() => t.reset());

const order = { email: 'a@example.org', placedAt: new Date('2031-01-01T00:00:00Z'), lines: [{ quantity: 1 }] };

describe('submit', () => {
  it('makes a run with its whole graph and gives its result (R1)', async () => {
    const run = await t.client.submit(Pay, { amount: 7 });
    expect(run).toMatchObject({ id: expect.stringMatching(/^\d+$/), created: true });
    expect(JSON.parse(JSON.stringify(run))).toEqual({ id: run.id, created: true });
    expect(await run.steps()).toMatchObject([
      {
        node: 'charge',
        state: 'available',
        queue: 'orders',
        priority: 3,
        input: { amount: 7 },
        dependents: 2,
        timeout_ms: 30_000,
      },
      { node: 'last', state: 'pending', open_deps: 1, on_dep_failure: 'cancel_branch', input: null },
      { node: 'notify', state: 'pending', open_deps: 1, queue: 'mail', input: 'ops' },
    ]);
    expect(t.woken).toEqual(['orders']);
    await t.work(({ kind }) => (kind === 'charge' ? { paid: 7 } : { done: true }));
    expect(await run.result()).toEqual({ done: true });
    expect(await run.wait()).toBe('completed');
    expect(await run.info()).toMatchObject({ id: run.id, workflow: 'pay', state: 'completed', openSteps: 0 });
  });

  it.each<[string, unknown]>([
    ['text', 'hello'],
    ['text that looks like JSON', '{"a":1}'],
    ['text that looks like a number', '5'],
    ['empty text', ''],
    ['text with quotes, backslashes and new lines', `"a\\b'c\n,{}`],
    ['zero', 0],
    ['number', -1.5e-7],
    ['true', true],
    ['null', null],
    ['list', [1, [2, []], null]],
    ['empty object', {}],
    ['object with odd names', { 'a"b': 1, constructor: 2, ['__proto__x']: 3, '': 4 }],
  ])('brings every kind of JSON to the step as it was given: %s (S30)', async (_name, input) => {
    const run = await t.client.submit(EchoFlow, input);
    const [step] = await run.steps();
    expect(step?.input).toEqual(input);
    await t.work(({ input: json }) => JSON.parse(json ?? 'null'));
    expect(await run.result()).toEqual(input);
  });

  it('keeps a property named __proto__ as data (R36)', async () => {
    const run = await t.client.submit(EchoFlow, JSON.parse('{"__proto__": {"admin": true}}'));
    await t.work(({ input }) => JSON.parse(input ?? ''));
    const result = (await run.result()) as object;
    expect(Object.keys(result)).toEqual(['__proto__']);
    expect((result as { admin?: boolean }).admin).toBeUndefined();
  });

  it('gives undefined for a workflow without a result', async () => {
    const run = await t.client.submit(Tell, 'ops');
    await t.work();
    expect(await run.result()).toBeUndefined();
  });

  it('tells how a run failed', async () => {
    const run = await t.client.submit(EchoFlow, 1);
    await t.work(() => new Discard('card refused'));
    expect(await run.wait()).toBe('failed');
    await expect(run.result()).rejects.toMatchObject({
      code: 'CYCLONE_RUN_FAILED',
      runId: run.id,
      node: 'echo',
      kind: 'echo',
      error: 'card refused',
      errorKind: 'permanent',
    });
  });

  it('tells that a contained branch took the result with it', async () => {
    const run = await t.client.submit(Pay, { amount: 1 });
    await t.work(() => new Discard('no'));
    expect(await run.wait()).toBe('completed');
    await expect(run.result()).rejects.toMatchObject({
      code: 'CYCLONE_RESULT_UNAVAILABLE',
      message: expect.stringContaining('"last" is cancelled'),
    });
  });

  it('tells that a run was cancelled, and why', async () => {
    const run = await t.client.submit(EchoFlow, 1);
    await run.cancel('customer left');
    await expect(run.result()).rejects.toMatchObject({ code: 'CYCLONE_RUN_CANCELLED', reason: 'customer left' });
  });

  it('emits one event for the run and one for each step, after the commit (R33, F21)', async () => {
    const stop = t.listen();
    const run = await t.client.submit(Pay, { amount: 1 });
    stop();
    expect(t.events).toMatchObject([
      { type: 'run_submitted', runId: run.id, workflow: 'pay' },
      ...['charge', 'notify', 'last'].map((node) => ({ type: 'submitted', runId: run.id, node, attempt: 1 })),
    ]);
  });

  it('refuses a class that is no workflow', async () => {
    await expect(t.client.submit(Steps as never, {} as never)).rejects.toMatchObject({
      code: 'CYCLONE_UNKNOWN_HANDLER',
    });
  });
});

describe('options of submit (R9)', () => {
  it('stores queue, priority, tags and deadline; a handler’s own queue is weaker, a node’s own stronger', async () => {
    const run = await t.client.submit(
      Pay,
      { amount: 1 },
      { queue: 'bulk', priority: -4, tags: { tenant: 'a"b', kind: '{}' }, runDeadline: '2h' },
    );
    expect((await run.steps()).map(({ queue, priority }) => [queue, priority])).toEqual([
      ['bulk', -4],
      ['bulk', -4],
      ['bulk', -4],
    ]);
    const info = await run.info();
    expect(info.tags).toEqual({ tenant: 'a"b', kind: '{}' });
    expect(Date.parse(info.deadlineAt ?? '') - Date.parse(info.startsAt)).toBe(7_200_000);
    expect(t.woken).toEqual(['bulk']);
    const [found] = await t.sql(`select id from cyclone_runs where tags @> '{"tenant": "a\\"b"}'`);
    expect(found.id).toBe(run.id);
  });

  it('takes the deadline of the workflow when submit names none', async () => {
    const info = await (await t.client.submit(Pay, { amount: 1 })).info();
    expect(Date.parse(info.deadlineAt ?? '') - Date.parse(info.startsAt)).toBe(7 * 86_400_000);
  });

  it('delays what has no dependencies, counts the deadline from there, and wakes nobody', async () => {
    const run = await t.client.submit(Pay, { amount: 1 }, { delay: '1h' });
    const info = await run.info();
    expect(Date.parse(info.startsAt) - Date.parse(info.createdAt)).toBe(3_600_000);
    expect(Date.parse(info.deadlineAt ?? '') - Date.parse(info.startsAt)).toBe(7 * 86_400_000);
    const [charge] = await run.steps();
    expect(Date.parse(String(charge?.['scheduled_at']))).toBe(Date.parse(info.startsAt));
    expect(t.woken).toEqual([]);
    await run.cancel();
  });

  it.each([
    [new Date('2035-05-05T10:00:00.123Z'), '2035-05-05T10:00:00.123'],
    ['2035-05-05T12:00:00+02:00', '2035-05-05T10:00:00.000'],
    ['2035-05-05T12:00:00+02', '2035-05-05T10:00:00.000'],
    ['2035-05-05T10:00Z', '2035-05-05T10:00:00.000'],
  ])('starts at %p, whatever the zones of the machines (S66)', async (startAt, expected) => {
    const run = await t.client.submit(EchoFlow, 1, { startAt });
    expect((await run.info()).startsAt).toBe(`${expected}000Z`);
  });

  it.each<[string, object]>([
    ['startAt', { delay: '1s', startAt: new Date() }],
    ['startAt', { startAt: '2035-05-05T10:00:00' }],
    ['startAt', { startAt: 'tomorrow' }],
    ['startAt', { startAt: new Date(NaN) }],
    ['startAt', { startAt: '2035-13-05T10:00:00Z' }],
    ['startAt', { startAt: 5 }],
    ['startAt', { startAt: new Date('+020000-01-01T00:00:00Z') }],
    ['delay', { delay: -1 }],
    ['delay', { delay: '5 parsecs' }],
    ['priority', { priority: 1.5 }],
    ['priority', { priority: 2 ** 31 }],
    ['queue', { queue: '' }],
    ['queue', { queue: 'a\u0000' }],
    ['runDeadline', { runDeadline: 0 }],
    ['tags', { tags: ['a'] }],
    ['tags', { tags: { a: '\u0000' } }],
    ['tags.a', { tags: { a: 1 } }],
    ['tx', { tx: null }],
    ['tx', { tx: {} }],
  ])('refuses a wrong %s without writing anything: %j', async (option, options) => {
    const before = await t.runCount();
    const rejection = { code: 'CYCLONE_INVALID_OPTION', option };
    await expect(t.client.submit(Pay, { amount: 1 }, options as never)).rejects.toMatchObject(rejection);
    await expect(t.client.submitOnce(Pay, 'k', { amount: 1 }, options as never)).rejects.toMatchObject(rejection);
    await expect(t.client.enqueue(steps.charge, { amount: 1 }, options as never)).rejects.toMatchObject(rejection);
    await expect(t.client.submitMany(Pay, [{ amount: 1 }], options as never)).rejects.toMatchObject(rejection);
    expect(await t.runCount()).toBe(before);
  });
});

describe('what is refused', () => {
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;

  it.each<[string, unknown, string]>([
    ['U+0000', { x: 'a\u0000b' }, 'CYCLONE_INVALID_PAYLOAD'],
    ['half a surrogate pair', ['\ud800'], 'CYCLONE_INVALID_PAYLOAD'],
    ['a BigInt', { a: 1n }, 'CYCLONE_INVALID_PAYLOAD'],
    ['a cycle', circular, 'CYCLONE_INVALID_PAYLOAD'],
    ['NaN', { a: NaN }, 'CYCLONE_INVALID_PAYLOAD'],
    ['a Map', new Map([[1, 2]]), 'CYCLONE_INVALID_PAYLOAD'],
    ['a function', () => 1, 'CYCLONE_INVALID_PAYLOAD'],
    ['two megabytes', 'x'.repeat(2 * 1024 * 1024), 'CYCLONE_PAYLOAD_TOO_LARGE'],
  ])('leaves no row and names the node: %s (R36, S8)', async (_name, input, code) => {
    const before = await t.runCount();
    const rejection = { code, node: 'echo' };
    await expect(t.client.submit(EchoFlow, input)).rejects.toMatchObject(rejection);
    await expect(t.client.submitOnce(EchoFlow, 'key', input)).rejects.toMatchObject(rejection);
    await expect(t.client.enqueue(steps.echo, input)).rejects.toMatchObject(rejection);
    const many = t.client.submitMany(EchoFlow, [1, input, 2]);
    await expect(many).rejects.toMatchObject({ ...rejection, message: expect.stringMatching(/^inputs\[1\]: /) });
    expect(await t.runCount()).toBe(before);
  });

  it('is a graph with more nodes than allowed, or an unknown handle (R3)', async () => {
    const before = await t.runCount();
    await expect(t.client.submit(Wide, 10_001)).rejects.toThrow(InvalidGraphError);
    await expect(t.client.enqueue({ kind: 'echo' } as never, 1)).rejects.toThrow(InvalidGraphError);
    await expect(t.client.submitMany(EchoFlow, 'text' as never)).rejects.toMatchObject({ option: 'inputs' });
    expect(await t.runCount()).toBe(before);
  });

  it('passes a graph of the largest size in one call', async () => {
    const run = await t.client.submit(Wide, 10_000);
    expect(t.calls.filter((call) => call === 'submit')).toHaveLength(1);
    expect((await run.info()).openSteps).toBe(10_000);
    await run.cancel();
  });
});

describe('DTO classes (R37)', () => {
  it('gives define an instance, made of the stored form', async () => {
    const run = await t.client.submit(PlaceOrder, order);
    const [step] = await run.steps();
    expect(step?.input).toEqual({ email: 'a@example.org', year: 2031 });
  });

  it('refuses an input that the workflow’s class refuses, with every problem', async () => {
    const before = await t.runCount();
    await expect(
      t.client.submit(PlaceOrder, { email: 'nobody', placedAt: new Date(), lines: [{ quantity: 1 }, { quantity: 0 }] }),
    ).rejects.toMatchObject({
      code: 'CYCLONE_INPUT_VALIDATION',
      subject: 'input of workflow place_order',
      problems: ['email must be an email', 'lines.1.quantity must not be less than 1'],
    });
    await expect(t.client.submit(PlaceOrder, 'text' as never)).rejects.toMatchObject({
      code: 'CYCLONE_INPUT_VALIDATION',
    });
    await expect(t.client.submit(PlaceOrder, { a: 1n } as never)).rejects.toThrow(InvalidPayloadError);
    expect(await t.runCount()).toBe(before);
  });

  it('refuses a literal that the handler’s class refuses, and names the node', async () => {
    const before = await t.runCount();
    const wrong = { ...order, email: 'nobody' } as unknown as {
      email: string;
      placedAt: string;
      lines: Order['lines'];
    };
    const rejection = { code: 'CYCLONE_INPUT_VALIDATION', node: 'check', problems: ['email must be an email'] };
    await expect(t.client.enqueue(steps.check, wrong)).rejects.toMatchObject(rejection);
    await expect(t.client.enqueueMany(steps.check, [wrong])).rejects.toMatchObject(rejection);
    expect(await t.runCount()).toBe(before);
    const right = { ...order, placedAt: order.placedAt.toISOString() };
    const run = await t.client.enqueue(steps.check, right);
    expect((await run.steps())[0]?.input).toEqual(right);
  });
});

describe('enqueue and bulk', () => {
  it('makes a one-node run, whose result is the output of a step and nothing of an action (R5)', async () => {
    const step = await t.client.enqueue(steps.charge, { amount: 3 }, { priority: 1 });
    const action = await t.client.enqueue(steps.notify, 'ops');
    expect(await step.info()).toMatchObject({ workflow: 'charge', resultNode: 'charge', openSteps: 1 });
    expect(await action.info()).toMatchObject({ workflow: 'notify', resultNode: null });
    await t.work(({ input }) => ({ paid: JSON.parse(input ?? '').amount }));
    expect(await step.result()).toEqual({ paid: 3 });
    expect(await action.result()).toBeUndefined();
  });

  it('submits many runs in order in one call (R8)', async () => {
    const runs = await t.client.submitMany(EchoFlow, [1, 'two', null], { tags: { batch: '1' } });
    expect(t.calls).toEqual(['submit']);
    const inputs = await Promise.all(runs.map(async (run) => (await run.steps())[0]?.input));
    expect(inputs).toEqual([1, 'two', null]);
    expect(await t.client.submitMany(EchoFlow, [])).toEqual([]);
  });

  it('submits thousands in a few calls of one transaction (R8, C13)', async () => {
    const before = await t.sql(`select count(*)::int as n from cyclone_runs`);
    const runs = await t.client.enqueueMany(
      steps.notify,
      Array.from({ length: 2_000 }, (_, i) => `u${i}`),
    );
    expect(t.calls).toEqual(['beginSubmit', 'submit', 'submit', 'submit', 'submit', 'commitSubmit']);
    expect(new Set(runs.map(({ id }) => id)).size).toBe(2_000);
    const [last] = await (runs[1_999] as (typeof runs)[0]).steps();
    expect(last?.input).toBe('u1999');
    const after = await t.sql(`select count(*)::int as n, count(distinct created_at)::int as calls from cyclone_runs`);
    expect(after[0].n - before[0].n).toBe(2_000);
  });

  it('makes none of many when the database refuses one call (R8)', async () => {
    const before = await t.runCount();
    let calls = 0;
    t.observer = (call, phase) => {
      if (call === 'submit' && phase === 'before' && ++calls === 2) {
        throw Object.assign(new Error('disk full'), { code: '53100' });
      }
    };
    await expect(
      t.client.submitMany(
        EchoFlow,
        Array.from({ length: 1_000 }, (_, i) => i),
      ),
    ).rejects.toThrow('disk full');
    t.observer = undefined;
    expect(t.calls.at(-1)).toBe('rollbackSubmit');
    expect(await t.runCount()).toBe(before);
    expect(t.woken).toEqual([]);
  });
});
