import { OperatorClient } from '#cyclone/client/operator-client.js';
import { WorkflowClient } from '#cyclone/client/workflow-client.js';
import type { StepContext } from '#cyclone/graph/step-context.js';
import { CycloneError } from '#cyclone/model/errors/index.js';
import { resolveHandlerOptions } from '#cyclone/model/options.js';
import { sleep } from '#cyclone/model/timer.js';
import { Connections } from '#cyclone/store/connections.js';
import { Engine } from '#cyclone/store/engine.js';
import { sharesSessions } from '#cyclone/store/pooler.js';
import { Worker, type RegisteredHandler } from '#cyclone/worker/worker.js';
import { resolveWorkerOptions, type WorkerOptions } from '#cyclone/worker/worker-options.js';
import type { DataSource } from 'typeorm';
import { definitions } from '../client/fixture.js';
import { openDataSource } from '../support/postgres.js';
import { Order, steps } from './workflow.js';

export const POLL_MS = 250;

export interface ApplicationOptions {
  readonly preparedStatements?: boolean;
  readonly worker?: WorkerOptions;
  /** Whether the worker hears notifications. */
  readonly listen?: boolean;
}

/** One process of an application: a worker, a client and an operator on one DataSource, and what they said. */
export class Application {
  readonly log: string[] = [];
  readonly worker: Worker;
  readonly client: WorkflowClient;
  readonly operator: OperatorClient;
  /** Called inside the completion transaction of a ledger step, after its entry. */
  inTransaction: (ctx: StepContext) => Promise<void> = () => Promise.resolve();
  /** Calls of the client and the operator that failed. */
  failedCalls = 0;
  private readonly engine: Engine;
  private ordering: Promise<void> | undefined;
  private looking: Promise<void> | undefined;
  private closing = false;
  private closed = false;
  private ordered = 0;

  private constructor(
    private readonly dataSource: DataSource,
    options: ApplicationOptions,
  ) {
    const note = (message: string): void => void this.log.push(message);
    const connections = new Connections(dataSource, {
      preparedStatements: options.preparedStatements ?? true,
      onWait: note,
    });
    this.engine = new Engine(connections, 'public', (what, error) => note(`${what}: ${String(error)}`));
    const logger = { log: note, warn: note, error: note };
    this.client = new WorkflowClient(this.engine, definitions, logger);
    this.operator = new OperatorClient(this.engine, logger);
    const workerOptions = { pollInterval: POLL_MS, queues: { default: 6 }, shutdownTimeout: 1_000, ...options.worker };
    this.worker = new Worker(
      this.engine,
      this.handlers(),
      resolveWorkerOptions(workerOptions, ['default'], { listen: options.listen ?? true }),
      logger,
    );
  }

  static async open(url: string, options: ApplicationOptions = {}): Promise<Application> {
    const application = new Application(await openDataSource(url, { poolSize: 10, connectTimeoutMS: 10_000 }), options);
    // As the module does when it starts.
    const { connections } = application.engine;
    if (connections.preparedStatements && (await sharesSessions(connections))) connections.shareSessions();
    return application;
  }

  /** Orders that the client was told of, or that are on their way. */
  get orders(): number {
    return this.ordered;
  }

  /** Places so many orders at once. */
  async order(count: number): Promise<void> {
    const first = this.ordered;
    this.ordered += count;
    for (let i = 0; i < count; i++) await this.placed(first + i);
  }

  /** Submits so many ledger steps that stand alone. */
  async enqueue(count: number): Promise<void> {
    await this.client.enqueueMany(
      steps.ledger,
      Array.from({ length: count }, (_, i) => i),
    );
  }

  /** What the doctor finds wrong, or why it finds nothing. */
  async examine(): Promise<string> {
    try {
      const findings = await this.operator.doctor();
      return findings.flatMap(({ level, message }) => (level === 'ok' ? [] : [message])).join('\n');
    } catch (error) {
      if (!CycloneError.is(error)) throw error;
      return `${error.message} ${String(error.cause)}`;
    }
  }

  /** From now on the client places an order every moment and the operator looks at the stats, whatever becomes of their calls. */
  keepBusy(): void {
    this.closing = false;
    this.ordering = this.loop(() => this.order(1));
    this.looking = this.loop(() => this.try(() => this.operator.stats()));
  }

  /** The client and the operator come to rest; every order that was begun is placed. */
  async rest(): Promise<void> {
    this.closing = true;
    await Promise.all([this.ordering, this.looking]);
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.rest();
    await this.worker.stop();
    await this.client.close();
    await this.engine.notifier.close();
    await this.dataSource.destroy();
  }

  /** The key makes it safe to repeat, so an order is placed once in the end. */
  private async placed(order: number): Promise<void> {
    while (!this.closed && !(await this.try(() => this.client.submitOnce(Order, `order ${order}`, order))))
      await sleep(50);
  }

  /** Whether a call succeeded. Whatever it throws has to be one of Cyclone's own errors. */
  private async try(call: () => Promise<unknown>): Promise<boolean> {
    try {
      await call();
      return true;
    } catch (error) {
      this.failedCalls++;
      if (!CycloneError.is(error)) this.log.push(`A CALL FAILED WITH A RAW ERROR ${String(error)}`);
      return false;
    }
  }

  private async loop(turn: () => Promise<unknown>): Promise<void> {
    while (!this.closing) {
      await turn();
      await sleep(100);
    }
  }

  private handlers(): ReadonlyMap<string, RegisteredHandler> {
    const handler = (kind: string, invoke: RegisteredHandler['invoke']): [string, RegisteredHandler] => [
      kind,
      { kind, nodeType: 'step', where: `Test.${kind}`, options: resolveHandlerOptions({}, {}), invoke },
    ];
    return new Map([
      handler('plain', (input) => input),
      handler('ledger', async (input, ctx) => {
        const tx = await ctx.completionTx();
        // A key that a transaction of a lost worker may hold, and an entry without one, so that a second would show.
        await tx.query('insert into keyed_ledger values ($1, $2) on conflict do nothing', [ctx.runId, ctx.node]);
        const entry = [ctx.runId, ctx.node, ctx.attempt];
        await tx.query('insert into ledger (run_id, node, attempt) values ($1, $2, $3)', entry);
        await this.inTransaction(ctx);
        return input;
      }),
    ]);
  }
}
