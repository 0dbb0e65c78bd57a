import type { EngineDatabase, EngineSession } from './engine-sql.js';

/** A call that stands still inside the database. */
export interface ParkedCall<T> {
  /** What it answers once it may go on. */
  readonly result: Promise<T>;
}

/** How often a state is asked for before a test gives up: each time is a round trip. */
const MAX_LOOKS = 20_000;

/**
 * Parks engine functions in their middle, so that a test decides what happens in between (DESIGN §10).
 *
 * A point is `step <node> <new state>`, `attempt <node> <outcome>` or `run <new state>`: the moment just before such a row is
 * written, when its locks are already held. While a gate at a point is shut, whoever comes there waits.
 */
export class Gates {
  private constructor(
    private readonly keeper: EngineSession,
    private readonly observer: EngineSession,
  ) {}

  /** Puts triggers on the engine's tables. The next `clear` of the database opens all gates. */
  static async install(database: EngineDatabase): Promise<Gates> {
    await database.main.client.query(TRIGGERS);
    return new Gates(await database.open(), await database.open());
  }

  async shut(point: string): Promise<void> {
    await this.keeper.query('select pg_advisory_lock(hashtextextended($1, 0))', [point]);
  }

  async open(point: string): Promise<void> {
    await this.keeper.query('select pg_advisory_unlock(hashtextextended($1, 0))', [point]);
  }

  /** Starts a call on a session and comes back when it stands at a gate or waits for somebody's lock. */
  async park<T>(session: EngineSession, call: Promise<T>): Promise<ParkedCall<T>> {
    let ended: string | undefined;
    call.then(
      (value) => (ended = `answered ${JSON.stringify(value)}`),
      (error: unknown) => (ended = `failed with ${String(error)}`),
    );
    for (let looks = 0; looks < MAX_LOOKS; looks++) {
      if (await this.isBlocked(session)) return { result: call };
      if (ended) throw new Error(`The call was to be parked, but it ${ended}.`);
    }
    throw new Error('The call was to be parked, but it runs on and on.');
  }

  /** Whether a session waits for a lock of another one. */
  async isBlocked(session: EngineSession): Promise<boolean> {
    return this.observer.value<boolean>('select cardinality(pg_blocking_pids($1)) > 0', [session.pid]);
  }

  /** The sessions that hold what this one waits for. */
  async blockersOf(session: EngineSession): Promise<number[]> {
    return this.observer.value<number[]>('select pg_blocking_pids($1)', [session.pid]);
  }
}

const TRIGGERS = `
create or replace function test_gate() returns trigger language plpgsql as $gate$
declare
  v_new   jsonb := to_jsonb(new);
  v_point text := case tg_table_name
    when 'cyclone_steps'    then format('step %s %s', v_new ->> 'node', v_new ->> 'state')
    when 'cyclone_attempts' then format('attempt %s %s', v_new ->> 'node', v_new ->> 'outcome')
    else format('run %s', v_new ->> 'state')
  end;
  v_key   bigint := hashtextextended(v_point, 0);
begin
  perform pg_advisory_lock_shared(v_key);
  perform pg_advisory_unlock_shared(v_key);
  return new;
end
$gate$;
create or replace trigger test_gate before insert or update on cyclone_steps for each row execute function test_gate();
create or replace trigger test_gate before insert on cyclone_attempts for each row execute function test_gate();
create or replace trigger test_gate before insert or update on cyclone_runs for each row execute function test_gate();
`;
