import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { SCHEMA_VERSION } from '#cyclone/store/migration-files.js';
import { migrate } from '#cyclone/store/migrator.js';
import { EngineSession } from '../support/engine-sql.js';
import { createDatabase, type TestDatabase } from '../support/postgres.js';
import { newerLibrary } from './newer-library.js';

const execute = promisify(execFile);

/**
 * A migration as releases bring it: a column of the busiest table, and a view that shows it. The only lock on what workers use is taken
 * through the view first, as its readers do.
 */
const NEXT = `lock table cyclone_v_steps in access exclusive mode;
alter table cyclone_steps add column next_thing text;
create or replace view cyclone_v_steps as
  select run_id, node, node_type, kind, queue, priority, state, open_deps, dependents, on_dep_failure, input, output,
         attempt, max_attempts, backoff, timeout_ms, reclaims, retention_ms, scheduled_at, available_at,
         lease_owner, lease_expiry, lease_generation,
         coalesce(state = 'running' and lease_expiry < clock_timestamp(), false) as lease_expired,
         started_at, finished_at, error, error_kind, error_fingerprint, panic_stack, contained, wake_at, wait_ms,
         parent_node, item_index, concurrency,
         case when progress_generation = lease_generation then progress end as progress,
         case when progress_generation = lease_generation then progress_note end as progress_note,
         next_thing
  from cyclone_steps`;

let database: TestDatabase;
const sessions: EngineSession[] = [];
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(async () => {
  await Promise.all(sessions.map((session) => session.end()));
  await database.drop();
});

async function open(): Promise<EngineSession> {
  const session = await EngineSession.connect(database.url);
  sessions.push(session);
  return session;
}

describe('the migration of a schema that is in use', () => {
  it('waits for what runs, disturbs nobody with a deadlock, and loses nothing', async () => {
    const db = await open();
    await migrate(db.client);
    const errors: unknown[] = [];
    const load = { going: true };
    const loop = async (work: (session: EngineSession) => Promise<unknown>): Promise<number> => {
      const session = await open();
      let rounds = 0;
      for (; load.going; rounds++) await work(session).catch((error: unknown) => errors.push(error));
      return rounds;
    };
    const worker = (owner: string) => {
      let done: Awaited<ReturnType<EngineSession['claim']>> = [];
      return loop(async (session) => {
        const events = await session.flush(done, { owner, queues: { default: 20 } });
        done = events.filter(({ event }) => event === 'claimed');
        await session.heartbeat(done, { owner });
      });
    };
    const loops = [
      worker('a'),
      worker('b'),
      loop((session) => session.submitMany(Array.from({ length: 20 }, () => ({ a: [], b: ['a'] })))),
      loop((session) => session.sweep()),
      loop((session) => session.query('select * from cyclone_v_steps where lease_expired')),
      loop((session) => session.query('select * from cyclone_v_kinds')),
      loop(async (session) => {
        const run = await session.submit({ x: { kind: 'other' } });
        await session.pause(run);
        await session.resume(run);
        await session.cancel(run);
      }),
    ];
    const holder = await open();
    await holder.query('begin');
    await holder.query('select count(*) from cyclone_v_steps');
    const newer = newerLibrary([{ compatibleFrom: SCHEMA_VERSION, sql: NEXT }]);
    const migrating = execute(process.execPath, [newer.command, 'migrate', '--database-url', database.url]).finally(
      newer.remove,
    );
    const observer = await open();
    while (!(await observer.value<boolean>(`select exists (select from pg_locks where not granted)`)));
    await holder.query('commit');
    expect((await migrating).stdout.trim()).toBe(String(SCHEMA_VERSION + 1));
    load.going = false;
    const rounds = await Promise.all(loops);
    expect(errors).toEqual([]);
    expect(rounds.every((count) => count > 0)).toBe(true);
    expect(await db.problems()).toEqual([]);
    expect(await db.value('select count(*)::int from cyclone_steps where next_thing is not null')).toBe(0);
  });
});
