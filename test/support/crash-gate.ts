import pg from 'pg';
import { sleep } from '#cyclone/model/timer.js';

/** How long a test waits for a state of the database before it fails. */
const PATIENCE_MS = 150_000;

/**
 * Lets engine calls stand still inside the database, their locks held, until the test opens the gate: only so can a process be
 * killed while its call is really in flight. A point is what the call is about to write and the node that it concerns:
 * `insert`, `claim`, `complete`, `beat`, `put_back`, `entry` (of the ledger), each with a node; `tick` with a worker.
 */
export class CrashGate {
  private constructor(
    private readonly keeper: pg.Client,
    private readonly observer: pg.Client,
  ) {}

  static async open(url: string): Promise<CrashGate> {
    const [keeper, observer] = await Promise.all([connect(url), connect(url)]);
    return new CrashGate(keeper, observer);
  }

  async shut(point: string): Promise<void> {
    await this.keeper.query('select pg_advisory_lock(hashtextextended($1, 0))', [point]);
  }

  /** Opens every gate. */
  async openAll(): Promise<void> {
    await this.keeper.query('select pg_advisory_unlock_all()');
  }

  /** A mark of what the backend has executed up to now. */
  async historyOf(pid: number): Promise<string> {
    const [row] = await this.rows<{ at: string }>(
      `select coalesce(query_start, backend_start)::text as at from pg_stat_activity where pid = $1`,
      [pid],
    );
    if (!row) throw new Error(`Backend ${pid} is gone.`);
    return row.at;
  }

  /** Waits until a call that the backend got after `history` stands at a gate (`parked`) or is answered. */
  async settled(pid: number, history: string): Promise<'parked' | 'answered'> {
    let found: 'parked' | 'answered' | undefined;
    let doing = '';
    await this.until(
      async () => {
        const [row] = await this.rows<{ parked: boolean; answered: boolean; doing: string }>(
          `select cardinality(pg_blocking_pids(pid)) > 0 as parked, state <> 'active' and query_start <> $2 as answered,
                  concat_ws(' ', state, query_start, wait_event_type, wait_event, query) as doing
             from pg_stat_activity where pid = $1`,
          [pid, history],
        );
        if (!row) throw new Error(`Backend ${pid} is gone.`);
        ({ doing } = row);
        if (row.parked) found = 'parked';
        else if (row.answered) found = 'answered';
        return found !== undefined;
      },
      () => `backend ${pid} to do more than at ${history}: ${doing}`,
    );
    return found ?? 'answered';
  }

  /** Waits until the backend has nothing under way any more, or is gone. */
  idle(pid: number): Promise<void> {
    const sql = `select not exists (select 1 from pg_stat_activity where pid = $1 and state = 'active') as yes`;
    return this.untilQuery(sql, [pid]);
  }

  gone(pid: number): Promise<void> {
    return this.untilQuery('select not exists (select 1 from pg_stat_activity where pid = $1) as yes', [pid]);
  }

  /** Ends a backend and waits until it is gone. */
  async terminate(pid: number): Promise<void> {
    await this.observer.query('select pg_terminate_backend($1)', [pid]);
    await this.gone(pid);
  }

  /** Waits until the first column of the first row is true. */
  untilQuery(sql: string, values: unknown[] = []): Promise<void> {
    return this.until(
      async () => {
        const { rows } = await this.observer.query<Record<string, unknown>>(sql, values);
        return Object.values(rows[0] ?? {})[0] === true;
      },
      () => sql,
    );
  }

  async rows<T extends object>(sql: string, values: unknown[] = []): Promise<T[]> {
    return (await this.observer.query<T>(sql, values)).rows;
  }

  get client(): pg.Client {
    return this.observer;
  }

  async close(): Promise<void> {
    await Promise.all([this.keeper.end(), this.observer.end()]);
  }

  private async until(isSo: () => Promise<boolean>, what: () => string): Promise<void> {
    const limit = performance.now() + PATIENCE_MS;
    while (!(await isSo())) {
      if (performance.now() > limit) throw new Error(`Waited in vain for: ${what()}`);
      await sleep(5);
    }
  }
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}

/** The triggers of the gates. */
export const CRASH_GATES = `
create function crash_gate() returns trigger language plpgsql as $gate$
declare
  v_new   jsonb := to_jsonb(new);
  v_old   jsonb := case when tg_op = 'UPDATE' then to_jsonb(old) end;
  v_point text := case
    when tg_table_name = 'cyclone_workers' then 'tick ' || (v_new ->> 'id')
    when tg_table_name = 'cyclone_attempts' then 'put_back ' || (v_new ->> 'node')
    when tg_table_name = 'ledger' then 'entry ' || (v_new ->> 'node')
    when tg_op = 'INSERT' then 'insert ' || (v_new ->> 'node')
    when v_new ->> 'state' = 'running' and (v_new ->> 'lease_generation')::int > (v_old ->> 'lease_generation')::int then 'claim ' || (v_new ->> 'node')
    when v_new ->> 'state' = 'running' then 'beat ' || (v_new ->> 'node')
    when v_new ->> 'state' = 'completed' then 'complete ' || (v_new ->> 'node')
  end;
  v_key bigint := hashtextextended(v_point, 0);
begin
  if v_point is not null then
    perform pg_advisory_lock_shared(v_key);
    perform pg_advisory_unlock_shared(v_key);
  end if;
  return new;
end
$gate$;
create trigger crash_gate before insert or update on cyclone_steps for each row execute function crash_gate();
create trigger crash_gate before insert on cyclone_attempts for each row execute function crash_gate();
create trigger crash_gate before update on cyclone_workers for each row execute function crash_gate();
create trigger crash_gate before insert on ledger for each row execute function crash_gate();
`;
