import pg from 'pg';
import { SCHEMA_VERSION } from '#cyclone/store/migration-files.js';
import { migrate } from '#cyclone/store/migrator.js';
import { checkServer, dataSourceProblem } from '#cyclone/store/server-check.js';
import { createDatabase, openDataSource, type TestDatabase } from '../support/postgres.js';

let database: TestDatabase;
let client: pg.Client;
const query = async (sql: string, values?: unknown[]) =>
  (await client.query<Record<string, unknown>>(sql, values)).rows;

beforeAll(async () => {
  database = await createDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await migrate(client, { schema: 'flow' });
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

const namesOf = (problems: Error[]) => problems.map((problem) => problem.name);

describe('checkServer (R22)', () => {
  it('finds nothing wrong with a migrated schema, also through DataSource.query', async () => {
    expect(await checkServer(query, 'flow')).toEqual([]);
    const dataSource = await openDataSource(database.url);
    expect(await checkServer((sql, values) => dataSource.query(sql, values), 'flow')).toEqual([]);
    await dataSource.destroy();
  });

  it('reads right although the application has replaced the type parsers of pg (C17)', async () => {
    pg.types.setTypeParser(16, () => 'a boolean');
    pg.types.setTypeParser(23, () => 'an int4');
    try {
      expect(await checkServer(query, 'flow')).toEqual([]);
    } finally {
      pg.types.setTypeParser(16, (text) => text === 't');
      pg.types.setTypeParser(23, (text) => Number.parseInt(text, 10));
    }
  });

  it('lists all problems at once', async () => {
    await client.query(`set default_transaction_isolation = 'serializable'`);
    try {
      const problems = await checkServer(query, 'nowhere');
      expect(namesOf(problems)).toEqual(['UnsafeIsolationError', 'SchemaVersionError']);
      expect(problems[0]?.message).toContain('"serializable"');
      expect(problems[1]?.message).toContain(`npx nestjs-cyclone migrate --schema nowhere`);
    } finally {
      await client.query('reset default_transaction_isolation');
    }
  });

  it('sees the isolation that the role or the database sets', async () => {
    await client.query(`alter database ${database.name} set default_transaction_isolation = 'repeatable read'`);
    const other = new pg.Client({ connectionString: database.url });
    await other.connect();
    const problems = await checkServer(async (sql, values) => (await other.query(sql, values)).rows, 'flow');
    await other.end();
    await client.query(`alter database ${database.name} reset default_transaction_isolation`);
    expect(namesOf(problems)).toEqual(['UnsafeIsolationError']);
  });

  it.each([
    ['LATIN1', ['InvalidOptionError']],
    ['SQL_ASCII', []],
  ])('the encoding %s of a database is judged: %j (F15)', async (encoding, expected) => {
    const other = await createDatabase({ encoding });
    const there = new pg.Client({ connectionString: other.url });
    await there.connect();
    try {
      await migrate(there, { schema: 'flow' });
      const problems = await checkServer(async (sql, values) => (await there.query(sql, values)).rows, 'flow');
      expect(namesOf(problems)).toEqual(expected);
      for (const { message } of problems) expect(message).toContain('encoding UTF8; this one has LATIN1');
    } finally {
      await there.end();
      await other.drop();
    }
  });

  it('refuses a server older than 14', async () => {
    const answers = [{ version: '130022', isolation: 'read committed', encoding: 'UTF8' }];
    const old = async (sql: string, values?: unknown[]) =>
      sql.includes('server_version_num') ? answers : query(sql, values);
    const problems = await checkServer(old, 'flow');
    expect(namesOf(problems)).toEqual(['InvalidOptionError']);
    expect(problems[0]?.message).toContain('PostgreSQL 14 or newer; this server is 13.22');
  });

  it('reports a schema that is too old, too new or incomplete', async () => {
    await client.query('begin');
    await client.query('drop view flow.cyclone_v_runs, flow.cyclone_v_steps, flow.cyclone_v_kinds, flow.cyclone_v_dlq');
    await client.query(`delete from flow.cyclone_schema_version where version = $1`, [SCHEMA_VERSION]);
    expect((await checkServer(query, 'flow'))[0]?.message).toContain(`this library needs ${SCHEMA_VERSION}`);
    await client.query(`insert into flow.cyclone_schema_version values (99, 'next', 98)`);
    expect((await checkServer(query, 'flow'))[0]?.message).toContain('version 98 or later: upgrade nestjs-cyclone');
    await client.query('rollback');
  });
});

describe('a DataSource (R22)', () => {
  it('is for Postgres', () => expect(dataSourceProblem('postgres')).toBeUndefined());

  it.each(['mysql', 'cockroachdb', 'aurora-postgres', 'sqlite'])('is refused when its type is %s', (type) => {
    expect(dataSourceProblem(type)).toMatchObject({ code: 'CYCLONE_INVALID_OPTION', option: 'dataSource' });
    expect(dataSourceProblem(type)?.message).toContain(`this one is of type "${type}"`);
  });
});
