import { EngineDatabase, type EngineEvent, type EngineSession } from '../support/engine-sql.js';
import { Gates } from '../support/gate.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

/**
 * The clock of sessions that have asked for it stands still after it was read: what such a call does then, it does with a time that is
 * older than what others do meanwhile. It is the last reading of a loaded machine. `clear` puts the engine's own clock back.
 */
const SLOW_CLOCK = `
create or replace function cyclone_now() returns timestamptz language plpgsql volatile as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  if current_setting('test.slow_clock', true) = 'on' then
    perform set_config('test.slow_clock', 'off', false);
    perform pg_advisory_lock_shared(4711);
    perform pg_advisory_unlock_shared(4711);
  end if;
  return v_now;
end
$$`;

/** Lets a call stand still when it has read the clock for the first time, does something else, and lets it go on. */
async function afterReadingTheClock(
  call: (slow: EngineSession) => Promise<EngineEvent[]>,
  meanwhile: () => Promise<unknown>,
): Promise<EngineEvent[]> {
  const gates = await Gates.install(database);
  const [slow, keeper] = [await database.open(), await database.open()];
  await db.client.query(SLOW_CLOCK);
  await slow.query(`select set_config('test.slow_clock', 'on', false)`);
  await keeper.query('select pg_advisory_lock(4711)');
  const parked = await gates.park(slow, call(slow));
  await meanwhile();
  await keeper.query('select pg_advisory_unlock(4711)');
  return parked.result;
}

/** When a step began or ended, to the microsecond. */
const timesOf = async (run: string): Promise<Record<string, { began: string | null; ended: string | null }>> => {
  const rows = await db.query<{ node: string; began: string | null; ended: string | null }>(
    `select node, cyclone_iso(started_at) as began, cyclone_iso(finished_at) as ended from cyclone_steps where run_id = $1`,
    [run],
  );
  return Object.fromEntries(rows.map(({ node, began, ended }) => [node, { began, ended }]));
};

/** Completes a step; again while another call has its run. */
async function complete(step: EngineEvent): Promise<void> {
  const [answer] = await db.flush([step]);
  if (answer?.event === 'busy') await complete(step);
}

describe('the clock of the engine (F42)', () => {
  it('goes on inside a transaction, however long that one lasts', async () => {
    const fresh = await EngineDatabase.create(); // whose clock no test has replaced
    try {
      await fresh.main.query('begin');
      const first = await fresh.main.value<string>('select cyclone_iso(cyclone_now())');
      const run = await fresh.main.submit({ a: [] });
      const [row] = await fresh.main.query<{ began: string; later: string; born: string }>(
        `select cyclone_iso(now()) as began, cyclone_iso(cyclone_now()) as later, cyclone_iso(created_at) as born from cyclone_runs where id = $1`,
        [run],
      );
      await fresh.main.query('commit');
      expect(first > row!.began).toBe(true);
      expect(row!.born > first).toBe(true);
      expect(row!.later > row!.born).toBe(true);
    } finally {
      await fresh.drop();
    }
  });
});

describe('times along an edge never run backwards (F32)', () => {
  it('when a dependency completes in a call that read the clock before another one completed its sibling', async () => {
    const run = await db.submit({ a: [], b: [], c: ['a', 'b'] });
    const [a, b] = await db.claim();
    let done: Promise<void> | undefined;
    await afterReadingTheClock(
      (slow) => slow.flush([a!], { queues: { default: 5 } }),
      async () => {
        done = complete(b!);
        await db.value('select 1'); // behind the first try
      },
    );
    await done;
    await db.claim();
    const { b: dependency, c: dependent } = await timesOf(run);
    expect(dependent!.began! >= dependency!.ended!).toBe(true);
  });

  it('when a worker claims a step that became available after it had read the clock', async () => {
    const run = await db.submit({ a: [], b: ['a'] });
    const [a] = await db.claim();
    const claimed = await afterReadingTheClock(
      (slow) => slow.claim(),
      () => db.flush([a!]),
    );
    expect(claimed).toMatchObject([{ event: 'claimed', node: 'b' }]);
    const { a: dependency, b: dependent } = await timesOf(run);
    expect(dependent!.began! >= dependency!.ended!).toBe(true);
  });

  it.each<[string, (session: EngineSession, run: string, last: EngineEvent) => Promise<EngineEvent[]>]>([
    ['cancelled', (session, run) => session.cancel(run)],
    [
      'discarded',
      (session, _, last) => session.settle('failed', last, { errorKind: 'permanent', error: 'x', waitMs: 60_000 }),
    ],
  ])('when the run is %s while one of its steps is just being completed', async (_, end) => {
    const run = await db.submit({ a: [], b: [], c: ['a', 'b'] });
    const [a, b] = await db.claim();
    const [holder, other] = [await database.open(), await database.open()];
    const gates = await Gates.install(database);
    await holder.query('begin');
    await holder.query('select 1 from cyclone_runs where id = $1 for no key update', [run]);
    const ending = await gates.park(other, end(other, run, b!));
    await holder.flush([a!]);
    await holder.query('commit');
    await ending.result;
    const { a: dependency, c: dependent } = await timesOf(run);
    expect(dependent!.ended! >= dependency!.ended!).toBe(true);
  });

  it('when a run is cancelled while one of its steps is just being claimed', async () => {
    const run = await db.submit({ a: [], b: ['a'] });
    await afterReadingTheClock(
      (slow) => slow.cancel(run),
      () => db.claim(),
    );
    const { a, b } = await timesOf(run);
    expect(a!.ended! >= a!.began!).toBe(true);
    expect(b!.ended! >= a!.ended!).toBe(true);
  });

  it('when a sweep takes a step back that another call has just advanced', async () => {
    const run = await db.submit({ a: [], b: { maxAttempts: 1, policy: { timeoutMs: 1 } }, c: ['a', 'b'] });
    const [a] = await db.claim();
    await db.query(
      `update cyclone_steps set started_at = started_at - interval '1 min', lease_expiry = started_at where run_id = $1 and node = 'b'`,
      [run],
    );
    await afterReadingTheClock(
      (slow) => slow.sweep(),
      () => db.flush([a!]),
    );
    const { a: dependency, c: dependent } = await timesOf(run);
    expect(dependent!.ended! >= dependency!.ended!).toBe(true);
  });

  it('when a deadline ends a run in which another call has just completed a step', async () => {
    const run = await db.submit({ a: [], b: ['a'] }, { deadlineMs: 1 });
    const [a] = await db.claim();
    await afterReadingTheClock(
      (slow) => slow.deadlines(),
      () => db.flush([a!]),
    );
    const { a: dependency, b: dependent } = await timesOf(run);
    expect(dependent!.ended! >= dependency!.ended!).toBe(true);
  });
});
