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
    for (const session of this.sessions) await session.query(STORM, on ? ['on', '0'] : ['off', '1000000000']);
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
        const { lease, outcome, permanent, delayMs } = operation;
        const errorKind = permanent ? 'permanent' : { failed: 'retryable', timed_out: 'timeout' }[outcome as string];
        const options = { owner: lease.owner, ...(errorKind ? { errorKind, error: 'boom' } : {}) };
        return session.settle(outcome, rowOf(lease), delayMs === null ? options : { ...options, delayMs });
      }
      case 'heartbeat': {
        const rows = await session.heartbeat(operation.leases?.map(rowOf) ?? null, {
          owner: operation.owner,
          leaseMs: LEASE_MS,
        });
        return rows.map((row) => ({ ...row, event: row.outcome }) as unknown as EngineEvent);
      }
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
  return { event, runId, node, generation, reason: info?.reason as string | undefined };
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

const CLOCK = `
create sequence test_clock;
create or replace function cyclone_now() returns timestamptz language sql volatile as
  $$ select 'epoch'::timestamptz + last_value * interval '1 millisecond' from test_clock $$`;

const STORM = `select set_config('test.jitter', $1, false), set_config('cyclone.slow_claim_ms', $2, false),
  set_config('cyclone.claim_heads', '', false)`;

/** Moments of up to 3 ms, inside the database and only where a session has asked for them. */
const JITTER = `
create function test_jitter() returns trigger language plpgsql as $$
begin
  if current_setting('test.jitter', true) = 'on' then perform pg_sleep(random() * 0.003); end if;
  return new;
end
$$;
create trigger test_jitter before update on cyclone_steps for each row execute function test_jitter();
create trigger test_jitter before update on cyclone_runs for each row execute function test_jitter()`;

/** Writes down every state that a run or a step comes to. */
const PATHS = `
create unlogged table test_paths (place bigint generated always as identity, key text, state text);
create function test_note() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' or old.state <> new.state then
    insert into test_paths (key, state)
    values (case tg_table_name when 'cyclone_runs' then format('run %s', to_jsonb(new) ->> 'id')
                               else format('step %s/%s', to_jsonb(new) ->> 'run_id', to_jsonb(new) ->> 'node') end, new.state);
  end if;
  return null;
end
$$;
create trigger test_note after insert or update on cyclone_steps for each row execute function test_note();
create trigger test_note after insert or update on cyclone_runs for each row execute function test_note()`;

const HANGERS = `
select format('connection %s: %s, waits for %s', pid, state, coalesce(wait_event_type, 'nothing')) as line
  from pg_stat_activity
 where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid() and (state like 'idle in transaction%' or wait_event_type = 'Lock')`;

const ms = (column: string) => `coalesce((extract(epoch from ${column}) * 1000)::bigint::text, '-')`;

/** What `linesOf` says of the model. What a state does not use is not looked at. */
const LINES = `
select format('run %s: %s, %s open, %s uncontained, deadline %s', id, state, open_steps, uncontained_discards, ${ms('deadline_at')}) as line
  from cyclone_runs
union all
select format('step %s/%s: %s, attempt %s of %s, %s reclaims, generation %s, open %s, owner %s until %s, scheduled %s, wakes %s, error %s, contained %s',
         run_id, node, state, attempt, max_attempts, reclaims, lease_generation,
         case when state in ('completed', 'discarded', 'cancelled') then '-' else open_deps::text end,
         coalesce(lease_owner, '-'), ${ms('lease_expiry')}, ${ms('scheduled_at')},
         case when state like 'waiting%' then ${ms('wake_at')} else '-' end, coalesce(error_kind, '-'), coalesce(contained::text, '-'))
  from cyclone_steps`;

const ATTEMPTS = `select format('%s/%s/%s: attempt %s %s', run_id, node, generation, attempt, outcome) as line from cyclone_attempts`;
