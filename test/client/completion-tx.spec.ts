import type { StepContext } from '#cyclone/graph/step-context.js';
import { resolveHandlerOptions } from '#cyclone/model/options.js';
import { PermanentError } from '#cyclone/model/errors/index.js';
import { Worker, type RegisteredHandler } from '#cyclone/worker/worker.js';
import { resolveWorkerOptions } from '#cyclone/worker/worker-options.js';
import { TestClient } from './fixture.js';
import { EchoFlow, steps } from './workflows.js';

let t: TestClient;
let worker: Worker;
let charge: (input: unknown, ctx: StepContext) => unknown;

beforeAll(async () => {
  t = await TestClient.open();
  const handler = (kind: string, invoke: RegisteredHandler['invoke']): [string, RegisteredHandler] => [
    kind,
    { kind, nodeType: 'step', where: kind, options: resolveHandlerOptions({}, {}), invoke },
  ];
  const logger = { log() {}, warn() {}, error() {} };
  worker = new Worker(
    t.engine,
    // A poll of an hour: only a wake-up after the commit finds the new run.
    new Map([handler('charge', (input, ctx) => charge(input, ctx)), handler('echo', (input) => input)]),
    resolveWorkerOptions({ pollInterval: '1h' }, ['default', 'orders'], { listen: false }),
    logger,
  );
  await worker.start();
});
afterAll(async () => {
  await worker.stop();
  await t.close();
});

describe('a submit on ctx.completionTx() inside a handler (R6)', () => {
  it('exists when the step completes, and starts at once', async () => {
    charge = async (_input, ctx) =>
      (await t.client.submit(EchoFlow, 'from inside', { tx: await ctx.completionTx() })).id;
    const job = await t.client.enqueue(steps.charge, { amount: 1 });
    const id = (await job.result({ timeout: '20s' })) as unknown as string;
    expect(await t.client.run(id, EchoFlow).result({ timeout: '20s' })).toBe('from inside');
  });

  it('does not exist when the step fails, whatever was submitted, and the transaction survives a refusal', async () => {
    const before = await t.sql(`select count(*)::int as n from cyclone_runs`);
    charge = async (_input, ctx) => {
      const tx = await ctx.completionTx();
      await t.client.submitOnce(EchoFlow, 'never', 1, { tx });
      await t.client.submitMany(EchoFlow, [1, 2], { tx });
      await t.client.submit(EchoFlow, 'a\u0000', { tx }).catch(() => undefined);
      await t.client.enqueue(steps.charge, { amount: 2 }, { tx });
      throw new PermanentError('no');
    };
    const job = await t.client.enqueue(steps.charge, { amount: 1 });
    expect(await job.wait({ timeout: '20s' })).toBe('failed');
    const after = await t.sql(`select count(*)::int as n from cyclone_runs`);
    expect(after[0].n - before[0].n).toBe(1);
  });

  it('is refused after the handler has returned', async () => {
    let late: Promise<unknown> | undefined;
    charge = async (_input, ctx) => {
      const tx = await ctx.completionTx();
      late = job0.then(() => t.client.submit(EchoFlow, 1, { tx }));
      late.catch(() => undefined);
      return {};
    };
    let ended!: () => void;
    const job0 = new Promise<void>((resolve) => (ended = resolve));
    const job = await t.client.enqueue(steps.charge, { amount: 1 });
    await job.result({ timeout: '20s' });
    ended();
    await expect(late).rejects.toMatchObject({ code: 'CYCLONE_INVALID_OPTION', option: 'tx' });
  });

  it('wakes the flow of a step that submits in a transaction of its own instead (S58)', async () => {
    charge = async () => (await t.client.submitOnce(EchoFlow, 'own transaction', 'kept')).id;
    const job = await t.client.enqueue(steps.charge, { amount: 1 });
    const id = (await job.result({ timeout: '20s' })) as unknown as string;
    expect(await t.client.run(id, EchoFlow).result({ timeout: '20s' })).toBe('kept');
  });
});
