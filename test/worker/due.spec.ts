import { WorkflowClient } from '#cyclone/client/workflow-client.js';
import type { StepContext } from '#cyclone/graph/step-context.js';
import { RetryAfterError } from '#cyclone/model/errors/index.js';
import { definitions } from '../client/fixture.js';
import { EchoFlow } from '../client/workflows.js';
import { dropTemplate, Fixture, job, type TestHandlers } from './fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

/** Who waits for the poll waits for longer than any test, and nobody is told of anything. */
const idleWorker = (handlers: TestHandlers): Promise<unknown> => fixture.settledWorker(handlers, {}, { listen: false });

/** A client in the process of the worker. */
const client = (): WorkflowClient => new WorkflowClient(fixture.engine, definitions, { warn: () => undefined });

describe('work that comes due is claimed then, not at the next poll (F31)', () => {
  it('when this worker has put it back: retries with many delays, and snoozes', async () => {
    fixture = await Fixture.open();
    await idleWorker({
      retried: (delay: number, ctx: StepContext) => {
        if (ctx.attempt === 1) throw new RetryAfterError(delay);
      },
      snoozed: (_: unknown, ctx: StepContext) => {
        if (fixture.stepEvents('snoozed').every(({ runId }) => runId !== ctx.runId)) ctx.snooze(30);
      },
      failed: {
        run: (_: unknown, ctx: StepContext) => {
          if (ctx.attempt < 3) throw new Error('again');
        },
      },
    });
    const backoff = { baseMs: 20, factor: 1, maxMs: 20, jitter: false };
    await fixture.submit(
      ...[1, 3, 20, 21, 60, 200, 450].map((delay) => job('retried', delay)),
      job('snoozed'),
      job('failed', null, { policyJson: JSON.stringify({ backoff }) }),
    );
    await fixture.idle();
    expect(fixture.stepEvents('retried')).toHaveLength(9);
  });

  it.each([
    ['with a delay', () => ({ delay: '150ms' as const })],
    ['for a time', () => ({ startAt: new Date(Date.now() + 150) })],
  ])('when this process has submitted it %s', async (_, options) => {
    fixture = await Fixture.open();
    await idleWorker({ echo: (input: unknown) => input });
    const run = await client().submit(EchoFlow, 'later', options());
    expect(await run.result()).toBe('later');
  });

  it('when this process has submitted it in a transaction of its own', async () => {
    fixture = await Fixture.open();
    await idleWorker({ echo: (input: unknown) => input });
    const run = await fixture.dataSource.transaction((tx) =>
      client().submitOnce(EchoFlow, 'key', 'later', { delay: '100ms', tx }),
    );
    expect(await run.result()).toBe('later');
  });

  it('when another process has scheduled it and a tick has seen it', async () => {
    fixture = await Fixture.open();
    // Long enough for a worker to start and make its first tick before.
    const [run] = await fixture.submit({ ...job('work'), delayMs: 3_000 }, { ...job('work'), delayMs: 3_500_000 });
    await idleWorker({ work: () => 1 });
    await fixture.until(`select state = 'completed' from cyclone_runs where id = $1`, [run]);
    expect(await fixture.rows(`select count(*)::int as n from cyclone_steps where state = 'available'`)).toEqual([
      { n: 1 },
    ]);
  });
});
