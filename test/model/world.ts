import {
  EngineDatabase,
  type EngineEvent,
  type EngineSession,
  type TestGraph,
  type TestNode,
} from '../support/engine-sql.js';
import { PROBLEMS_SQL } from '../support/engine-invariants.js';
import { pathLine } from './comparison.js';
import { BACKOFF_MS, LEASE_MS, MAX_INPUT_BYTES, type Lease, type NodePlan, type RunPlan } from './model-state.js';
import type { Operation, Told } from './operations.js';
import { ATTEMPTS, CLOCK, HANGERS, JITTER, LINES, PATHS, RENEWED, STORM } from './world-sql.js';

/** A real database whose clock stands still until it is moved, and connections to it. */
export class World {
  private readonly plans = new Map<string, RunPlan>();
  private isStormy: boolean | undefined;

  private constructor(
    readonly database: EngineDatabase,
    readonly sessions: readonly EngineSession[],
  ) {}

  static async create(connections: number): Promise<World> {
    const database = await EngineDatabase.create();
    const sessions = [database.main];
    while (sessions.length < connections) sessions.push(await database.open());
    await database.main.client.query('set plan_cache_mode = force_generic_plan');
    await database.main.client.query(CLOCK);
    await database.main.client.query(JITTER);
    await database.main.client.query(PATHS);
    await lowerInputLimit(database.main);
    const world = new World(database, sessions);
    await world.setStorm(false);
    return world;
  }

  get main(): EngineSession {
    return this.database.main;
  }

  async setClock(ms: number): Promise<void> {
    await this.main.query(`select setval('test_clock', $1)`, [ms]);
  }

  /**
   * While it is on, every write of a state takes a moment, so that operations meet in their middle, and every search for work counts as
   * slow, after which claims may pass over what came to stand before all others (cyclone_claim_heads). Else no search counts as slow.
   */
  async setStorm(on: boolean): Promise<void> {
    if (on === this.isStormy) return;
    this.isStormy = on;
    for (const session of this.sessions) await session.query(STORM, on ? ['on', '-1000000'] : ['off', '1000000000']);
  }

  async forget(): Promise<void> {
    this.plans.clear();
    await this.main.query(
      'truncate cyclone_runs, cyclone_steps, cyclone_deps, cyclone_attempts, cyclone_audit, test_paths',
    );
  }

  async submit(plan: RunPlan): Promise<string> {
    const graph: TestGraph = Object.fromEntries(plan.nodes.map((node) => [node.name, testNode(node)]));
    const { deadlineMs, delayMs } = plan;
    const id = await this.main.submit(graph, { delayMs, ...(deadlineMs === null ? {} : { deadlineMs }) });
    this.plans.set(id, plan);
    return id;
  }

  async perform(session: EngineSession, operation: Operation): Promise<Told[]> {
    return (await this.call(session, operation)).map(toldOf);
  }

  /** The root runs of the dead letters of a reason, as retryExhausted looks for them (R24). */
  async exhausted(reason: string): Promise<string[]> {
    const rows = await this.main.query<{ root_run_id: string; root_state: string }>(
      'select * from cyclone_list_exhausted(null, $1, null, null, 1000, null, null, null)',
      [reason],
    );
    return [...new Set(rows.filter((row) => row.root_state === 'failed').map((row) => row.root_run_id))];
  }

  /** All runs and steps, one line each. */
  async read(): Promise<string[]> {
    return this.linesOf('lines', LINES);
  }

  async attempts(): Promise<string[]> {
    return this.linesOf('attempts', ATTEMPTS);
  }

  /** What is wrong in the tables by themselves, whatever the model says. */
  problems(): Promise<string[]> {
    return this.linesOf('problems', PROBLEMS_SQL);
  }

  /** Connections that hold a transaction open or wait for a lock (I12). */
  hangers(): Promise<string[]> {
    return this.linesOf('hangers', HANGERS);
  }

  /** The states that each run and step went through (I11). */
  async paths(): Promise<string[]> {
    const rows = await this.main.query<{ key: string; states: string[] }>(
      'select key, array_agg(state order by place) as states from test_paths group by key',
    );
    return rows.map(({ key, states }) => pathLine(key, states));
  }

  /** As a prepared statement: each is asked after every operation. */
  private async linesOf(name: string, text: string): Promise<string[]> {
    const { rows } = await this.main.client.query<Record<string, string>>({ name, text });
    return rows.flatMap((row) => Object.values(row));
  }

  private async call(session: EngineSession, operation: Operation): Promise<EngineEvent[]> {
    switch (operation.do) {
      case 'flush': {
        const done = operation.done.map((lease) => ({ ...rowOf(lease), output: this.outputOf(lease) }));
        const { owner, slots } = operation;
        return session.flush(done, { owner, leaseMs: LEASE_MS, queues: slots > 0 ? { default: slots } : {} });
      }
      case 'complete':
        return this.complete(session, operation.lease, operation.rollback);
      case 'settle': {
        const { lease, outcome, permanent, delayMs, maxReclaims } = operation;
        const errorKind = permanent ? 'permanent' : { failed: 'retryable', timed_out: 'timeout' }[outcome as string];
        const isError = errorKind !== undefined || outcome === 'interrupted';
        const options = {
          owner: lease.owner,
          maxReclaims,
          ...(isError ? { error: 'boom' } : {}),
          ...(errorKind ? { errorKind } : {}),
        };
        return session.settle(outcome, rowOf(lease), delayMs === null ? options : { ...options, delayMs });
      }
      case 'heartbeat':
        return this.heartbeat(session, operation.owner, operation.leases);
      case 'sweep':
        return session.sweep({ maxReclaims: operation.maxReclaims });
      case 'deadlines':
        return session.deadlines();
      case 'cancel':
        return session.cancel(operation.runId);
      case 'pause':
        return session.pause(operation.runId);
      case 'resume':
        return session.resume(operation.runId);
      case 'repair':
        return session.call('cyclone_repair_run', operation.runId, false, null, null);
      case 'retry':
        return session.retry(operation.runId, operation.node, { additional: operation.additional });
    }
  }

  /** A heartbeat by owner does not tell what it renewed: the same transaction looks. */
  private async heartbeat(
    session: EngineSession,
    owner: string,
    leases: readonly Lease[] | null,
  ): Promise<EngineEvent[]> {
    await session.query('begin');
    const rows = await session.heartbeat(leases?.map(rowOf) ?? null, { owner, leaseMs: LEASE_MS });
    const renewed = leases ? [] : await session.query<EngineEvent>(RENEWED, [owner, LEASE_MS]);
    await session.query('commit');
    const told = rows.map(({ outcome, ...lease }) => ({ ...lease, event: outcome, info: null }) as EngineEvent);
    return [...told, ...renewed];
  }

  private async complete(session: EngineSession, lease: Lease, rollback: boolean): Promise<EngineEvent[]> {
    await session.beginCompletion(rowOf(lease));
    try {
      const events = await session.complete(rowOf(lease), this.outputOf(lease), lease.owner);
      await session.query(rollback ? 'rollback' : 'commit');
      return events;
    } catch (error) {
      await session.query('rollback');
      if ((error as { code?: string }).code !== 'CY001') throw error;
      return [{ ...rowOf(lease), event: 'lease_lost', info: null } as EngineEvent];
    }
  }

  private outputOf({ runId, node }: Lease): string | undefined {
    const plan = this.plans.get(runId)?.nodes.find(({ name }) => name === node);
    if (plan?.type === 'action') return undefined;
    return plan?.large ? 'x'.repeat(MAX_INPUT_BYTES) : node;
  }
}

const rowOf = ({ runId, node, generation }: Lease) => ({ run_id: runId, node, generation });

function toldOf({ event, run_id: runId, node, generation, info }: EngineEvent): Told {
  return { event, runId, node, generation, reason: info?.reason as string | undefined, info: info ?? {} };
}

function testNode({
  type,
  after,
  gathers,
  onDepFailure,
  maxAttempts,
  timeoutMs,
  waitMs,
  priority,
}: NodePlan): TestNode {
  const isWork = type === 'step' || type === 'action';
  return {
    type,
    after: [...after],
    priority,
    maxAttempts,
    ...(gathers ? { spec: { a: after.map((f) => ({ f })) } } : {}),
    policy: {
      onDepFailure,
      backoff: { baseMs: BACKOFF_MS, factor: 2, jitter: false },
      ...(timeoutMs === null ? {} : { timeoutMs }),
      ...(isWork ? {} : { waitMs }),
    },
  };
}

/** The engine refuses inputs above 64 MiB (R36), more than a random test can afford: here it is the same code with a smaller number. */
async function lowerInputLimit(session: EngineSession): Promise<void> {
  const source = await session.value<string>(`select pg_get_functiondef('cyclone_resolve_input'::regproc)`);
  const lowered = source.replace(/(v_limit\s+constant bigint := )\d+/, `$1${MAX_INPUT_BYTES}`);
  if (lowered === source) throw new Error('cyclone_resolve_input no longer names its limit as v_limit.');
  await session.client.query(lowered);
}
