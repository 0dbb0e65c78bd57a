import { EngineDatabase, type EngineEvent, type EngineSession } from '../support/engine-sql.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

/** Every operation of the engine, on runs of its own. */
async function everything(session: EngineSession): Promise<void> {
  const graph = { a: [], b: ['a'], c: { spec: { f: 'a' } }, s: { type: 'signal' } };
  await session.call('cyclone_register_worker', 'me', 'host', 1, '1.0.0', {}, []);
  const [run] = await session.submitMany([graph, graph, graph], { deadlineMs: 60_000 });
  await session.submitOnce(['key'], graph, {});
  const claimed: EngineEvent[] = await session.claim({ queues: { default: 3 } });
  await session.heartbeat(claimed);
  await session.heartbeat(null);
  const columns = [claimed.map((s) => s.run_id), claimed.map((s) => s.node), claimed.map((s) => s.generation)];
  const reports = [claimed.map(() => 0.5), claimed.map(() => 'half')];
  await session.call('cyclone_heartbeat', 'me', 30_000, ...columns, ...reports);
  await session.pause(run!);
  await session.flush(claimed.slice(0, 1), { queues: { default: 2 } });
  await session.resume(run!);
  await session.fail(claimed.slice(1, 2));
  await session.failForGood(claimed[2]!);
  await session.retry(claimed[2]!.run_id);
  const [more] = await session.claim({ queues: { default: 1 } });
  await session.beginCompletion(more!);
  await session.complete(more!);
  await session.query('commit');
  await session.call('cyclone_tick', 'me', ['default'], ['work'], 20, true, 100, null, 1_000, null);
  await session.sweep();
  await session.deadlines();
  await session.cancel(run!);
  await session.call('cyclone_adopt', 'me', 'nobody', [], [], [], [], [], []);
  await session.call('cyclone_retire_worker', 'me', true);
}

describe('the functions of the engine', () => {
  it('never scan a table, although their plans were made when all tables were empty (C1)', async () => {
    const lane = await database.open();
    // The server keeps a plan after some calls: let it do that now.
    for (let i = 0; i < 12; i++) {
      await everything(lane);
      await db.query('truncate cyclone_runs, cyclone_steps, cyclone_deps, cyclone_attempts, cyclone_workers');
    }
    await db.submitMany(Array.from({ length: 500 }, () => ({ x: { kind: 'unserved' }, y: ['x'] })));
    const scans = () =>
      db.query(
        `select relname, seq_scan::int as scans from pg_stat_user_tables where relname ~ '^cyclone_(runs|steps|deps|attempts)$' order by 1`,
      );
    // Truncating builds the indexes anew, which counts as a scan, and a session reports its counts when it likes.
    for (const session of [db, lane]) await session.query('select pg_stat_force_next_flush()');
    const before = await scans();
    await everything(lane);
    await lane.query('select pg_stat_force_next_flush()');
    expect(await scans()).toEqual(before);
  });
});
