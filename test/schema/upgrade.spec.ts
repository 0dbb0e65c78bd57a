import { readdir, readFile } from 'node:fs/promises';
import { SCHEMA_VERSION } from '#cyclone/store/migration-files.js';
import { migrate } from '#cyclone/store/migrator.js';
import { EngineSession } from '../support/engine-sql.js';
import { createDatabase, type TestDatabase } from '../support/postgres.js';

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

/** The schema as it was before the operations came, with the functions of today: they are replaced anyway. */
async function installBefore(db: EngineSession): Promise<void> {
  const functions = (await readdir('migrations/functions')).map((file) => `functions/${file}`);
  await db.client.query('set check_function_bodies = off; set search_path = public, pg_temp');
  for (const file of ['0001_tables.sql', '0002_views.sql', ...functions]) {
    await db.client.query(await readFile(`migrations/${file}`, 'utf8'));
  }
  await db.client.query('reset all');
}

describe('the migration of a schema that is in use', () => {
  it('waits for what runs, disturbs nobody with a deadlock, and loses nothing', async () => {
    const db = await open();
    await installBefore(db);
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
    const migrating = migrate((await open()).client);
    const observer = await open();
    while (!(await observer.value<boolean>(`select exists (select from pg_locks where not granted)`)));
    await holder.query('commit');
    expect(await migrating).toMatchObject({ version: SCHEMA_VERSION });
    load.going = false;
    const rounds = await Promise.all(loops);
    expect(errors).toEqual([]);
    expect(rounds.every((count) => count > 0)).toBe(true);
    expect(await db.problems()).toEqual([]);
    expect(await db.value('select count(*)::int from cyclone_steps where progress is not null')).toBe(0);
  });
});
