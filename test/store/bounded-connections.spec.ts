import { BoundedConnections } from '#cyclone/store/bounded-connections.js';
import { Connections } from '#cyclone/store/connections.js';
import { statement, type Session } from '#cyclone/store/session.js';
import type { DataSource } from 'typeorm';
import { createDatabase, openDataSource, type TestDatabase } from '../support/postgres.js';

let database: TestDatabase;
let dataSource: DataSource;
beforeAll(async () => {
  database = await createDatabase();
  dataSource = await openDataSource(database.url, { poolSize: 1 });
});
afterAll(async () => {
  await dataSource?.destroy();
  await database?.drop();
});

const SETTINGS = statement('settings', `select current_setting('statement_timeout'), current_setting('timezone')`);
const DIE = statement('die', 'select pg_terminate_backend(pg_backend_pid())');
const DIVIDE = statement('divide', 'select 1 / 0');

const settings = async (session: Session) => (await session.rows(SETTINGS, []))[0];

describe.each(['transaction', 'session'] as const)('connections for reading, bounded by the %s', (scope) => {
  const plain = () => new Connections(dataSource, { preparedStatements: true });
  const bounded = () => new BoundedConnections(plain(), 4_321, scope);

  it('leave the pool its settings, also after an error', async () => {
    const before = await plain().use(settings);
    expect((await bounded().use(settings))?.[0]).toBe('4321ms');
    await expect(bounded().use((session) => session.rows(DIVIDE, []))).rejects.toMatchObject({ code: '22012' });
    expect(await plain().use(settings)).toEqual(before);
  });

  it('tell the first error when what comes after it fails as well, and give the connection to nobody', async () => {
    const work = async (session: Session): Promise<never> => {
      const first: unknown = await session.rows(DIVIDE, []).catch((error: unknown) => error);
      await session.rows(DIE, []).catch(() => undefined);
      throw first;
    };
    await expect(bounded().use(work)).rejects.toMatchObject({ code: '22012' });
    expect((await plain().use(settings))?.[0]).not.toBe('4321ms');
  });
});
