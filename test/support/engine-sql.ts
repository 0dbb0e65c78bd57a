import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { guardTriggerSql } from '#cyclone/store/guard-trigger.js';
import { migrate } from '#cyclone/store/migrator.js';
import { createDatabase, type TestDatabase } from './postgres.js';
import { PROBLEMS_SQL } from './engine-invariants.js';

/** A node of a test's graph. Its edges are `after` and every node that `spec` refers to. */
export interface TestNode {
  after?: string[];
  type?: string;
  kind?: string;
  queue?: string;
  priority?: number;
  input?: unknown;
  /** How the input is made of upstream outputs, as cyclone_resolve_input reads it. */
  spec?: unknown;
  maxAttempts?: number;
  policy?: Record<string, unknown>;
}

/** Nodes by name; an array stands for a node that only has these dependencies. */
export type TestGraph = Record<string, TestNode | string[]>;

export interface TestRunOptions {
  workflow?: string;
  resultNode?: string;
  delayMs?: number;
  startAt?: Date;
  deadlineMs?: number;
  tags?: Record<string, string>;
}

/** One line of an engine function's answer. */
export interface EngineEvent {
  event: string;
  run_id: string;
  node: string;
  kind: string;
  queue: string;
  attempt: number;
  generation: number;
  node_type: string;
  max_attempts: number;
  timeout_ms: string | null;
  input: unknown;
  info: Record<string, unknown> | null;
}

/** A step as one execution holds it; what a claim answers is one. */
export interface TestLease {
  run_id: string;
  node: string;
  generation: number;
}

export interface ClaimOptions {
  owner?: string;
  leaseMs?: number;
  /** Free slots of each queue. */
  queues?: Record<string, number>;
  kinds?: string[];
  maxBytes?: number;
}

export interface SettleOptions {
  owner?: string;
  error?: string;
  errorKind?: string;
  stack?: string;
  fingerprint?: string;
  delayMs?: number;
  maxReclaims?: number | null;
  waitMs?: number;
}

type Row = Record<string, unknown>;
export type StepRow = Row & { node: string; state: string; attempt: number; lease_generation: number };

/** A connection that calls the engine's functions. Defaults: owner `me`, queue `default`, kind `work`, leases of 30 s. */
export class EngineSession {
  private constructor(
    readonly client: pg.Client,
    readonly pid: number,
  ) {}

  static async connect(url: string): Promise<EngineSession> {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => undefined); // tests terminate sessions on purpose
    await client.connect();
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    return new EngineSession(client, rows[0]?.pid ?? 0);
  }

  async query<T extends object = Row>(sql: string, values: unknown[] = []): Promise<T[]> {
    return (await this.client.query<T>(sql, values)).rows;
  }

  /** The only column of the only row. */
  async value<T = unknown>(sql: string, values: unknown[] = []): Promise<T> {
    const [row] = await this.query(sql, values);
    return Object.values(row ?? {})[0] as T;
  }

  call<T extends object = EngineEvent>(name: string, ...args: unknown[]): Promise<T[]> {
    return this.query<T>(`select * from ${name}(${args.map((_, i) => `$${i + 1}`).join(', ')})`, args);
  }

  end(): Promise<void> {
    return this.client.end();
  }

  /** Makes one run and gives its id. */
  async submit(graph: TestGraph, options: TestRunOptions = {}): Promise<string> {
    const [id] = await this.submitMany([graph], options);
    return id ?? '';
  }

  async submitMany(graphs: TestGraph[], options: TestRunOptions = {}): Promise<string[]> {
    const rows = await this.call<{ run_index: number; run_id: string }>(
      'cyclone_submit',
      null,
      ...submitArguments(graphs, options),
    );
    return rows.toSorted((a, b) => a.run_index - b.run_index).map((row) => row.run_id);
  }

  /** Keyed submits of one workflow; `waitMs` null leaves the session's lock_timeout. */
  submitOnce(
    keys: string[],
    graph: TestGraph = { a: [] },
    {
      hashes = keys.map(() => 'hash'),
      tokens = keys.map(() => randomUUID()),
      waitMs = null,
      ...options
    }: TestRunOptions & { hashes?: string[]; tokens?: string[]; waitMs?: number | null } = {},
  ): Promise<{ run_index: number; run_id: string | null; outcome: string; same_input: boolean | null }[]> {
    return this.call(
      'cyclone_submit_once',
      null,
      keys,
      hashes,
      tokens,
      waitMs,
      ...submitArguments(
        keys.map(() => graph),
        options,
      ),
    );
  }

  /** Completes steps and claims new ones; without `queues` it claims nothing. */
  flush(done: (TestLease & { output?: unknown })[], options: ClaimOptions = {}): Promise<EngineEvent[]> {
    const { owner = 'me', leaseMs = 30_000, queues = {}, kinds = ['work'], maxBytes = 4_194_304 } = options;
    const names = Object.keys(queues);
    return this.call(
      'cyclone_flush',
      owner,
      leaseMs,
      ...leaseArguments(done),
      done.map(({ output }) => json(output)),
      names,
      Object.values(queues),
      kinds,
      maxBytes,
    );
  }

  claim(options: ClaimOptions = {}): Promise<EngineEvent[]> {
    return this.flush([], { queues: { default: 100 }, ...options });
  }

  /** Claims what is there and expects it to be one step. */
  async claimOne(options: ClaimOptions = {}): Promise<EngineEvent> {
    const claimed = await this.claim(options);
    const [only] = claimed;
    if (!only || claimed.length > 1) throw new Error(`Expected one step to claim, got ${claimed.length}.`);
    return only;
  }

  settle(outcome: string, lease: TestLease | TestLease[], options: SettleOptions = {}): Promise<EngineEvent[]> {
    const leases = Array.isArray(lease) ? lease : [lease];
    const each = <T>(value: T | undefined) => leases.map(() => value ?? null);
    const { owner = 'me', error, errorKind, stack, fingerprint, delayMs, maxReclaims = 20, waitMs = null } = options;
    const outcomes = leases.map(() => outcome);
    const details = [each(error), each(errorKind), each(stack), each(fingerprint), each(delayMs)];
    return this.call('cyclone_settle', owner, outcomes, ...leaseArguments(leases), ...details, maxReclaims, waitMs);
  }

  /** A failed attempt; a delay of 0 makes the step claimable again at once. */
  fail(lease: TestLease | TestLease[], options: SettleOptions = {}): Promise<EngineEvent[]> {
    return this.settle('failed', lease, { error: 'boom', errorKind: 'retryable', delayMs: 0, ...options });
  }

  /** Discards the step at once. */
  failForGood(lease: TestLease, options: SettleOptions = {}): Promise<EngineEvent[]> {
    return this.fail(lease, { errorKind: 'permanent', ...options });
  }

  /** Begins a completion transaction as the worker does. */
  async beginCompletion(lease: TestLease): Promise<void> {
    await this.query('begin isolation level read committed');
    const mark = markOf(lease);
    await this.query(`select set_config('cyclone.lease', $1, true), set_config('application_name', $1, true)`, [mark]);
  }

  complete(lease: TestLease, output?: unknown, owner = 'me'): Promise<EngineEvent[]> {
    return this.call(
      'cyclone_complete',
      markOf(lease),
      owner,
      lease.run_id,
      lease.node,
      lease.generation,
      json(output),
    );
  }

  heartbeat(
    leases: TestLease[] | null,
    { owner = 'me', leaseMs = 30_000 } = {},
  ): Promise<(TestLease & { outcome: string })[]> {
    const listed = leases ? leaseArguments(leases) : [null, null, null];
    return this.call('cyclone_heartbeat', owner, leaseMs, ...listed, null, null);
  }

  sweep({ maxReclaims = 20, limit = 1000 }: { maxReclaims?: number | null; limit?: number } = {}): Promise<
    EngineEvent[]
  > {
    return this.query<EngineEvent>('select * from cyclone_sweep(cyclone_now(), $1, $2)', [maxReclaims, limit]);
  }

  deadlines(limit = 1000): Promise<EngineEvent[]> {
    return this.query<EngineEvent>('select * from cyclone_deadlines(cyclone_now(), $1)', [limit]);
  }

  /** The next piece of the walk for stranded runs, whether it is due or not. */
  async checkStranded(budget = 10_000): Promise<void> {
    await this.query(`update cyclone_marks set at = '-infinity' where name = 'stranded'`);
    await this.query('select cyclone_check_stranded(cyclone_now(), $1)', [budget]);
  }

  cancel(run: string, reason: string | null = null): Promise<EngineEvent[]> {
    return this.call('cyclone_cancel', run, reason);
  }

  pause(run: string): Promise<EngineEvent[]> {
    return this.call('cyclone_pause', run);
  }

  resume(run: string): Promise<EngineEvent[]> {
    return this.call('cyclone_resume', run);
  }

  /** Without a node it is retryAll. */
  retry(
    run: string,
    node: string | null = null,
    { additional = 0, reason = null as string | null } = {},
  ): Promise<EngineEvent[]> {
    return this.call('cyclone_retry', run, node, additional, reason);
  }

  async run(id: string): Promise<Row> {
    const [row] = await this.query('select * from cyclone_runs where id = $1', [id]);
    return row ?? {};
  }

  async step(run: string, node: string): Promise<StepRow> {
    const [row] = await this.query<StepRow>('select * from cyclone_steps where run_id = $1 and node = $2', [run, node]);
    if (!row) throw new Error(`Run ${run} has no node ${node}.`);
    return row;
  }

  /** The state of a run and of its nodes, as one line: `running: a=completed b=available`. */
  async states(run: string): Promise<string> {
    const steps = await this.value<string>(
      `select string_agg(node || '=' || state, ' ' order by node) from cyclone_steps where run_id = $1`,
      [run],
    );
    return `${await this.value('select state from cyclone_runs where id = $1', [run])}: ${steps}`;
  }

  /** What is wrong with the counters and states of all runs, recounted from edges and states; empty when all is well. */
  async problems(): Promise<string[]> {
    return (await this.query<{ problem: string }>(PROBLEMS_SQL)).map((row) => row.problem);
  }
}

/** A migrated database of its own, in which every change of state is checked by the guard trigger. */
export class EngineDatabase {
  private readonly sessions: EngineSession[] = [];

  private constructor(
    private readonly database: TestDatabase,
    readonly main: EngineSession,
  ) {}

  static async create(): Promise<EngineDatabase> {
    const database = await createDatabase();
    const main = await EngineSession.connect(database.url);
    await migrate(main.client);
    await main.client.query(guardTriggerSql());
    return new EngineDatabase(database, main);
  }

  get url(): string {
    return this.database.url;
  }

  get name(): string {
    return this.database.name;
  }

  /** Opens another connection; the next `clear` ends it. */
  async open(): Promise<EngineSession> {
    const session = await EngineSession.connect(this.database.url);
    this.sessions.push(session);
    return session;
  }

  /** Forgets all runs, sets the clock right and ends the other connections. Fails when the engine left something wrong behind. */
  async clear(): Promise<void> {
    await Promise.all(this.sessions.splice(0).map((session) => session.end()));
    const problems = await this.main.problems();
    await this.main.query(
      'truncate cyclone_runs, cyclone_steps, cyclone_deps, cyclone_attempts, cyclone_workers cascade',
    );
    await this.main.query('truncate cyclone_audit, cyclone_stranded_runs');
    await this.main.query(`delete from cyclone_marks where name like 'clock%'`);
    await this.main.query(`update cyclone_marks set run_id = 0, at = '-infinity'`);
    await this.moveClock(0);
    if (problems.length > 0) throw new Error(`The engine left this behind:\n${problems.join('\n')}`);
  }

  /** Sets the engine's clock to so many milliseconds after the real one. */
  async moveClock(ms: number): Promise<void> {
    await this.main.client.query(
      `create or replace function cyclone_now() returns timestamptz language sql volatile as
         $$ select clock_timestamp() + ${ms} * interval '1 millisecond' $$`,
    );
  }

  async drop(): Promise<void> {
    await Promise.all([this.main, ...this.sessions].map((session) => session.end()));
    await this.database.drop();
  }
}

/** Events as short texts, `claimed a`; runs have no node: `run_completed`. */
export function told(events: EngineEvent[]): string[] {
  return events.map(({ event, node }) => (node === null ? event : `${event} ${node}`));
}

/** The mark of a completion transaction. */
export function markOf({ run_id, node, generation }: TestLease): string {
  return `cyclone:${run_id}:${node}:${generation}`;
}

const json = (value: unknown): string | null => (value === undefined ? null : JSON.stringify(value));

function leaseArguments(leases: TestLease[]): unknown[] {
  return [leases.map((l) => l.run_id), leases.map((l) => l.node), leases.map((l) => l.generation)];
}

type Spec = { f?: string; l?: unknown; o?: Record<string, Spec>; a?: Spec[] };

/** The nodes that an input is made of. */
function references(spec: Spec): string[] {
  if (spec.f !== undefined) return [spec.f];
  return Object.values(spec.o ?? spec.a ?? []).flatMap(references);
}

/** The arguments of cyclone_submit after the ids, one run for each graph. */
function submitArguments(graphs: TestGraph[], options: TestRunOptions): unknown[] {
  const nodes = graphs.flatMap((graph, i) =>
    Object.entries(graph).map(([name, given]) => {
      const node: TestNode = Array.isArray(given) ? { after: given } : given;
      const deps = [...new Set([...(node.after ?? []), ...references((node.spec ?? {}) as Spec)])];
      return { ...node, index: i + 1, name, deps };
    }),
  );
  const deps = nodes.flatMap(({ index, name, deps: on }) => on.map((upstream) => ({ index, name, upstream })));
  const dependents = new Map<string, number>();
  for (const { index, upstream } of deps) {
    const key = `${index} ${upstream}`;
    dependents.set(key, (dependents.get(key) ?? 0) + 1);
  }
  const each = <T>(value: T | undefined) => graphs.map(() => value ?? null);
  return [
    each(options.workflow ?? 'flow'),
    each(options.resultNode),
    each(json(options.tags)),
    each(options.delayMs),
    each(options.startAt),
    each(options.deadlineMs),
    nodes.map((n) => n.index),
    nodes.map((n) => n.name),
    nodes.map((n) => n.type ?? 'step'),
    nodes.map((n) => n.kind ?? 'work'),
    nodes.map((n) => n.queue ?? 'default'),
    nodes.map((n) => n.priority ?? 0),
    nodes.map((n) => (n.spec === undefined ? JSON.stringify(n.input ?? null) : null)),
    nodes.map((n) => json(n.spec)),
    nodes.map((n) => n.deps.length),
    nodes.map((n) => dependents.get(`${n.index} ${n.name}`) ?? 0),
    nodes.map((n) => n.maxAttempts ?? 5),
    nodes.map((n) => json(n.policy)),
    deps.map((d) => d.index),
    deps.map((d) => d.name),
    deps.map((d) => d.upstream),
  ];
}
