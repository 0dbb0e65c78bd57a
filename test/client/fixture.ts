import pg from 'pg';
import type { DataSource } from 'typeorm';
import type { Definitions } from '#cyclone/client/definitions.js';
import { OperatorClient } from '#cyclone/client/operator-client.js';
import { WorkflowClient } from '#cyclone/client/workflow-client.js';
import { getWorkflowMetadata } from '#cyclone/graph/metadata.js';
import { UnknownHandlerError } from '#cyclone/model/errors/index.js';
import type { CycloneEvent } from '#cyclone/model/events.js';
import { Connections } from '#cyclone/store/connections.js';
import { Engine } from '#cyclone/store/engine.js';
import type { EngineRow } from '#cyclone/store/engine-row.js';
import { guardTriggerSql } from '#cyclone/store/guard-trigger.js';
import { migrate } from '#cyclone/store/migrator.js';
import type { CallPhase } from '#cyclone/store/session.js';
import type { RawClient } from '#cyclone/store/raw-client.js';
import { asWorker } from '../support/worker-role.js';
import { createDatabase, openDataSource, type TestDatabase } from '../support/postgres.js';

/** What a test wants a step to end with instead of an output. */
export class Discard {
  constructor(
    readonly error: string,
    readonly errorKind: 'permanent' | 'retryable' = 'permanent',
  ) {}
}

/** Workflow classes without constructor parameters, found by their decorators. */
export const definitions: Definitions = {
  workflow(workflow) {
    const metadata = getWorkflowMetadata(workflow);
    if (!metadata) throw new UnknownHandlerError(String((workflow as { name?: string }).name));
    const { input, runDeadline } = metadata.options;
    return {
      name: metadata.name,
      instance: new workflow(),
      ...(input === undefined ? {} : { input }),
      ...(runDeadline === undefined ? {} : { runDeadline }),
    };
  },
  defaults: {},
  limits: {},
};

export interface TestClientOptions {
  readonly poolSize?: number;
  /** Called at each phase of each engine call. */
  readonly observer?: (call: string, phase: CallPhase, client: RawClient) => void | Promise<void>;
}

/** A client on a database of its own, with the rights of a worker; steps are executed by `work`, because no worker runs here. */
export class TestClient {
  /** The engine calls that were made, in order; notifications come when they come and are left out. */
  readonly calls: string[] = [];
  readonly events: CycloneEvent[] = [];
  readonly warnings: string[] = [];
  readonly woken: string[] = [];
  readonly cancelled: string[] = [];
  observer: TestClientOptions['observer'];
  readonly engine: Engine;
  readonly client: WorkflowClient;
  /** A second one, as another process would have it. */
  readonly otherClient: WorkflowClient;
  readonly operator: OperatorClient;

  private constructor(
    readonly database: TestDatabase,
    readonly dataSource: DataSource,
    private readonly superuser: DataSource,
  ) {
    const connections = new Connections(dataSource, {
      preparedStatements: true,
      observer: async (call, phase, client) => {
        if (phase === 'before' && call !== 'notify') this.calls.push(call);
        await this.observer?.(call, phase, client);
      },
    });
    const problem = (what: string, error: unknown) => this.warnings.push(`${what}: ${String(error)}`);
    this.engine = new Engine(connections, 'public', problem);
    const logger = { warn: (message: string) => this.warnings.push(message) };
    this.client = new WorkflowClient(this.engine, definitions, logger);
    this.otherClient = new WorkflowClient(this.engine, definitions, logger);
    this.operator = new OperatorClient(this.engine, logger);
    this.engine.notifier.subscribe(({ queues, cancelled, inMs }) => {
      if (inMs === undefined) this.woken.push(...queues);
      this.cancelled.push(...cancelled);
    });
  }

  static async open({ poolSize = 10 }: TestClientOptions = {}): Promise<TestClient> {
    const database = await createDatabase();
    const admin = new pg.Client({ connectionString: database.url });
    await admin.connect();
    await migrate(admin);
    await admin.query(guardTriggerSql());
    await admin.end();
    const dataSource = await openDataSource(await asWorker(database.url), { poolSize });
    return new TestClient(database, dataSource, await openDataSource(database.url, { poolSize: 2 }));
  }

  /** Changes rows behind the back of the engine and of the guard trigger. */
  async byHand(sql: string, values: unknown[]): Promise<void> {
    await this.superuser.transaction(async (tx) => {
      await tx.query('set local session_replication_role = replica');
      await tx.query(sql, values);
    });
  }

  /** Hears events from now on. */
  listen(): () => void {
    return this.engine.events.subscribe((event) => this.events.push(event));
  }

  reset(): void {
    for (const list of [this.calls, this.events, this.warnings, this.woken, this.cancelled]) list.length = 0;
    this.observer = undefined;
  }

  /** What a test itself asks or does, as the superuser. */
  // oxlint-disable-next-line typescript/no-explicit-any -- rows of a test's own queries
  sql(text: string, values: unknown[] = []): Promise<any[]> {
    return this.superuser.query(text, values);
  }

  async runCount(): Promise<number> {
    const [{ runs, steps }] = await this.sql(
      `select (select count(*)::int from cyclone_runs) as runs, (select count(*)::int from cyclone_steps) as steps`,
    );
    return runs + steps;
  }

  /** Executes every step that is due, and what becomes due by that. `answer` gives the output of a step. */
  async work(answer: (row: EngineRow) => unknown = () => ({}), emit = true): Promise<void> {
    const claim = await this.sql(`select distinct queue, kind from cyclone_steps`);
    const request = {
      owner: 'worker',
      leaseMs: 30_000,
      queues: [...new Set(claim.map(({ queue }) => queue as string))].map((queue) => ({
        queue,
        slots: 1000,
      })),
      kinds: [...new Set(claim.map(({ kind }) => kind as string))],
      maxBytes: 4_194_304,
    };
    await this.engine.connections.use(async (session) => {
      let rows = await this.engine.store.flush(session, { ...request, completions: [] });
      while (true) {
        if (emit) this.engine.events.emitRows(rows, 'worker');
        const claimed = rows.filter(({ event }) => event === 'claimed');
        if (claimed.length === 0) return;
        const answers = claimed.map((row) => ({ row, output: answer(row) }));
        for (const { row, output } of answers) {
          if (!(output instanceof Discard)) continue;
          const settled = await this.engine.store.settle(
            session,
            'worker',
            [
              {
                ...row,
                outcome: 'failed',
                error: output.error,
                errorKind: output.errorKind,
                panicStack: null,
                fingerprint: null,
                delayMs: 0,
              },
            ],
            null,
            1_000,
          );
          if (emit) this.engine.events.emitRows(settled, 'worker');
        }
        const completions = answers
          .filter(({ output }) => !(output instanceof Discard))
          .map(({ row, output }) => ({ ...row, output: row.nodeType === 'action' ? null : JSON.stringify(output) }));
        rows = await this.engine.store.flush(session, { ...request, completions });
      }
    });
  }

  async close(): Promise<void> {
    await this.client.close();
    await this.otherClient.close();
    await this.engine.notifier.close();
    await this.dataSource.destroy();
    await this.superuser.destroy();
    await this.database.drop();
  }
}

/** Resolves once `condition` holds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setImmediate(resolve));
}
