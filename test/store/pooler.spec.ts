import { Connections } from '#cyclone/store/connections.js';
import { sharesSessions } from '#cyclone/store/pooler.js';
import { describeWithPgbouncer, startPgbouncer } from '../support/pgbouncer.js';
import { createDatabase, openDataSource, type TestDatabase } from '../support/postgres.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

async function found(url: string): Promise<boolean> {
  const dataSource = await openDataSource(url, { poolSize: 2 });
  try {
    return await sharesSessions(new Connections(dataSource, { preparedStatements: true }));
  } finally {
    await dataSource.destroy();
  }
}

describe('a direct connection', () => {
  it('is not taken for a pooler (F17)', async () => {
    expect(await found(database.url)).toBe(false);
  });
});

describeWithPgbouncer('pgbouncer', () => {
  it.each([
    ['transaction', {}, true],
    ['transaction', { server_round_robin: 1 }, true],
    ['transaction', { default_pool_size: 1 }, true],
    ['statement', {}, false], // the server refuses what every application needs, and so the look as well
    ['session', {}, false],
  ] as const)(
    'in %s mode with %j is recognised, however many sessions are free (F17): %s',
    async (mode, settings, shares) => {
      const pooler = await startPgbouncer(database.url, { mode, settings });
      const url = pooler.through(database.url);
      const busy = await openDataSource(url, { poolSize: 5 });
      try {
        // Five sessions of the server lie free when the look begins.
        if (mode === 'transaction')
          await Promise.all(Array.from({ length: 5 }, () => busy.query('select pg_sleep(0.01)')));
        if (mode === 'statement') await expect(found(url)).rejects.toThrow('statement');
        else expect(await found(url)).toBe(shares);
      } finally {
        await busy.destroy();
        await pooler.stop();
      }
    },
  );
});
