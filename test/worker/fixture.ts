import { Connections } from '#cyclone/store/connections.js';
import { Engine } from '#cyclone/store/engine.js';
import { guardTriggerSql } from '#cyclone/store/guard-trigger.js';
import { migrate } from '#cyclone/store/migrator.js';
import type { CallObserver } from '#cyclone/store/session.js';
import type { NewNode, NewRun } from '#cyclone/store/submit-store.js';
import type { NodePolicy } from '#cyclone/graph/plan.js';
import type { StepContext } from '#cyclone/graph/step-context.js';
import { isRunEvent, type CycloneEvent, type StepEvent } from '#cyclone/model/events.js';
import { resolveHandlerOptions, type HandlerOptions } from '#cyclone/model/options.js';
import { sleep } from '#cyclone/model/timer.js';
import { Worker, type RegisteredHandler } from '#cyclone/worker/worker.js';
import { resolveWorkerOptions, type WorkerOptions, type WorkerSettings } from '#cyclone/worker/worker-options.js';
import { DataSource } from 'typeorm';
import { TEST_ROLES } from '../support/test-roles.mjs';
import { asWorker, urlOf } from '../support/worker-role.js';
import { createDatabase, openDataSource, type TestDatabase } from '../support/postgres.js';

/** What a test says about a handler: its function, and options when the defaults do not do. */
export type TestHandler =
  | ((input: never, ctx: StepContext) => unknown)
  | {
      readonly run: (input: never, ctx: StepContext) => unknown;
      readonly options?: HandlerOptions;
      readonly action?: boolean;
    };

export type TestHandlers = Readonly<Record<string, TestHandler>>;

export interface FixtureOptions {
  readonly poolSize?: number;
  readonly observer?: CallObserver;
  readonly onWait?: (message: string) => void;
  readonly extra?: Record<string, unknown>;
  readonly dataSource?: Parameters<typeof openDataSource>[1];
  /** With the rights of a worker and no others; what the test itself asks is asked beside its pool then. @default the superuser */
  readonly role?: 'worker';
  /** Gives the password in place of the URL. */
  readonly password?: () => string;
  /** Another server than the one that all tests share. */
  readonly server?: string;
  /** Another encoding of the database than UTF8. */
  readonly encoding?: string;
}

let template: Promise<TestDatabase> | undefined;

/** A database with the schema, the guard of the state machine, and a ledger; made once for a file, copied for each test. */
async function schemaTemplate(): Promise<TestDatabase> {
  const database = await createDatabase();
  await prepare(database.url);
  return database;
}

async function prepare(url: string): Promise<void> {
  const dataSource = await openDataSource(url);
  await migrate(dataSource);
  await dataSource.query(guardTriggerSql());
  await dataSource.query('create table ledger (run_id bigint, node text, amount int, primary key (run_id, node))');
  await dataSource.destroy();
  await asWorker(url, ['ledger']);
}

/** Drops the template; call it in `afterAll`. */
export async function dropTemplate(): Promise<void> {
  await (await template)?.drop();
  template = undefined;
}

/** One process of the application: a DataSource, an engine, workers, and what they said. */
export class Fixture {
  readonly events: CycloneEvent[] = [];
  readonly log: string[] = [];
  private readonly workers: Worker[] = [];
  private readonly others: Fixture[] = [];
  private observer: DataSource | undefined;

  private constructor(
    readonly database: TestDatabase,
    readonly dataSource: DataSource,
    readonly engine: Engine,
    private readonly isSuperuser: boolean,
  ) {
    engine.events.subscribe((event) => this.events.push(event));
  }

  static async open(options: FixtureOptions = {}): Promise<Fixture> {
    const { server, encoding } = options;
    if (server || encoding) {
      const database = await createDatabase({ ...(server ? { server } : {}), ...(encoding ? { encoding } : {}) });
      await prepare(database.url);
      return Fixture.on(database, options);
    }
    template ??= schemaTemplate();
    return Fixture.on(await createDatabase({ template: (await template).name }), options);
  }

  private static async on(database: TestDatabase, options: FixtureOptions): Promise<Fixture> {
    const pool = {
      poolSize: options.poolSize ?? 10,
      ...(options.extra ? { extra: options.extra } : {}),
      ...options.dataSource,
    };
    const isWorker = options.role === 'worker';
    const url = isWorker ? urlOf(database.url, TEST_ROLES.worker) : database.url;
    const dataSource = options.password
      ? await new DataSource({
          type: 'postgres',
          ...partsOf(url),
          password: options.password,
          ...pool,
        }).initialize()
      : await openDataSource(url, pool);
    const connections = new Connections(dataSource, {
      preparedStatements: true,
      ...(options.observer ? { observer: options.observer } : {}),
      ...(options.onWait ? { onWait: options.onWait } : {}),
    });
    const problems: string[] = [];
    const engine = new Engine(connections, 'public', (what, error) => problems.push(`${what}: ${String(error)}`));
    return new Fixture(database, dataSource, engine, !isWorker);
  }

  /** A second process on the same database. */
  async another(options: FixtureOptions = {}): Promise<Fixture> {
    const other = await Fixture.on(this.database, options);
    this.others.push(other);
    return other;
  }

  /** A worker; it is stopped at the end of the test if need be. */
  worker(handlers: TestHandlers, options: WorkerOptions = {}, settings: WorkerSettings = {}): Worker {
    const registered = new Map<string, RegisteredHandler>();
    for (const [kind, handler] of Object.entries(handlers)) {
      const { run, options: own = {}, action = false } = typeof handler === 'function' ? { run: handler } : handler;
      registered.set(kind, {
        kind,
        nodeType: action ? 'action' : 'step',
        where: `Test.${kind}`,
        options: resolveHandlerOptions({}, own),
        invoke: (input, ctx) => run(input as never, ctx),
      });
    }
    const note = (message: string): void => void this.log.push(message);
    const worker = new Worker(
      this.engine,
      registered,
      resolveWorkerOptions({ pollInterval: 100, shutdownTimeout: 2_000, ...options }, ['default'], settings),
      { log: note, warn: note, error: note },
    );
    this.workers.push(worker);
    return worker;
  }

  /**
   * A worker that has settled: it has ticked, its thread renews leases, its own session listens if it is to, and it has looked for work
   * and found no more. What it does now it does because somebody told it, or because a time has come. It handles the kind `first` too.
   */
  async settledWorker(
    handlers: TestHandlers,
    options: WorkerOptions = {},
    settings: WorkerSettings = {},
  ): Promise<Worker> {
    const worker = this.worker({ ...handlers, first: () => 1 }, { pollInterval: '1h', ...options }, settings);
    await worker.start();
    while (worker.health().lastTickAt === null || worker.health().renewals.by !== 'thread') await sleep(5);
    if (settings.listen !== false) {
      await this.until(
        `select exists (select 1 from pg_stat_activity where datname = current_database() and application_name = 'cyclone-listen'
                           and state = 'idle' and query like 'listen%')`,
      );
    }
    const first = await this.submitOne(job('first'));
    await this.until(`select state = 'completed' from cyclone_runs where id = $1`, [first]);
    while (worker.health().running > 0) await sleep(5);
    return worker;
  }

  /** Submits runs; gives their ids. */
  async submit(...runs: NewRun[]): Promise<string[]> {
    const ids = await this.engine.connections.use((session) => this.engine.submits.submit(session, runs));
    this.engine.notifier.wake({ queues: ['default'] });
    return ids;
  }

  /** Submits one run and gives its id. */
  async submitOne(run: NewRun): Promise<string> {
    const [id] = await this.submit(run);
    return id as string;
  }

  /** What a test itself asks or does, as the superuser. */
  async rows<T = Record<string, unknown>>(sql: string, parameters: unknown[] = []): Promise<T[]> {
    if (this.isSuperuser) return (await this.dataSource.query(sql, parameters)) as T[];
    this.observer ??= await openDataSource(this.database.url, { poolSize: 2 });
    return (await this.observer.query(sql, parameters)) as T[];
  }

  async step(runId: string, node: string): Promise<Record<string, unknown>> {
    const [row] = await this.rows('select * from cyclone_steps where run_id = $1 and node = $2', [runId, node]);
    return row as Record<string, unknown>;
  }

  /** Resolves when the query's first row has a true first column; fails when the test is about to. */
  async until(sql: string, parameters: unknown[] = []): Promise<void> {
    const limit = performance.now() + 150_000;
    for (;;) {
      const [row] = await this.rows(sql, parameters).catch(() => []);
      if (row && Object.values(row)[0] === true) return;
      if (performance.now() > limit) throw new Error(`It never became true: ${sql}\nLog:\n${this.log.join('\n')}`);
      await sleep(10);
    }
  }

  /** Lets others go on, in a loop that waits for a state. */
  pause(): Promise<void> {
    return sleep(10);
  }

  /** Resolves when nothing is left to do, and the workers have read the answers that say so. */
  async idle(): Promise<void> {
    await this.until(`select not exists (select 1 from cyclone_runs where state in ('running', 'paused'))`);
    const workers = [this, ...this.others].flatMap((fixture) => fixture.workers);
    while (workers.some((worker) => worker.health().running > 0)) await sleep(5);
  }

  /** The types of a step's events, in order. */
  typesOf(runId: string, node?: string): string[] {
    return this.events
      .filter((event) => event.runId === runId && (node === undefined || (!isRunEvent(event) && event.node === node)))
      .map((event) => event.type);
  }

  stepEvents(type: StepEvent['type']): StepEvent[] {
    return this.events.filter((event): event is StepEvent => event.type === type);
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.stop()));
    await Promise.all(this.others.map((other) => other.closeOwn()));
    await this.closeOwn();
    await this.database.drop();
  }

  private async closeOwn(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.stop()));
    await this.engine.notifier.close();
    if (this.dataSource.isInitialized) await this.dataSource.destroy();
    await this.observer?.destroy();
  }
}

function partsOf(url: string): { host: string; port: number; username: string; database: string } {
  const { hostname, port, username, pathname } = new URL(url);
  return { host: hostname, port: Number(port), username, database: pathname.slice(1) };
}

/** A node as a test writes it: its policy is an object. */
export interface TestNode extends NewNode {
  readonly policy?: NodePolicy;
}

const NODE: Omit<NewNode, 'node' | 'kind'> = {
  nodeType: 'step',
  queue: 'default',
  priority: 0,
  inputJson: 'null',
  inputSpec: null,
  openDeps: 0,
  dependents: 0,
  maxAttempts: 5,
  policyJson: null,
};

/** A run of one step. */
export function job(kind: string, input: unknown = null, node: Partial<TestNode> = {}): NewRun {
  return graph([{ ...NODE, node: kind, kind, inputJson: JSON.stringify(input), ...node }]);
}

/** Steps that depend on each other in turn; each gets the output of the one before it. */
export function chain(kinds: readonly string[], input: unknown = null): NewRun {
  const name = (index: number): string => `n${index}`;
  return graph(
    kinds.map((kind, index) => ({
      ...NODE,
      node: name(index),
      kind,
      inputJson: index === 0 ? JSON.stringify(input) : null,
      inputSpec: index === 0 ? null : JSON.stringify({ f: name(index - 1) }),
      openDeps: index === 0 ? 0 : 1,
      dependents: index === kinds.length - 1 ? 0 : 1,
    })),
    kinds.slice(1).map((_, index) => [name(index + 1), name(index)] as const),
  );
}

export function graph(nodes: TestNode[], deps: NewRun['deps'] = []): NewRun {
  return {
    workflow: 'test',
    resultNode: null,
    tags: null,
    delayMs: null,
    startAt: null,
    deadlineMs: null,
    nodes: nodes.map(({ policy, ...node }) => (policy ? { ...node, policyJson: JSON.stringify(policy) } : node)),
    deps,
  };
}

/** A promise and what settles it. */
export function deferred<T = void>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((done) => (resolve = done));
  return { promise, resolve };
}

/** The longest backoff that a test can wait for. */
export const SOON = { baseMs: 1, factor: 1, maxMs: 1, jitter: false } as const;
