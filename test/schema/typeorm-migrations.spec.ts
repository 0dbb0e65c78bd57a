import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import type { DataSource, MigrationInterface, QueryRunner } from 'typeorm';
import { IrreversibleMigrationError, SchemaVersionError, UnsafeIsolationError } from '#cyclone/model/errors/index.js';
import { quoteIdentifier } from '#cyclone/store/identifier.js';
import { SCHEMA_VERSION } from '#cyclone/store/migration-files.js';
import { migrationSql } from '#cyclone/store/migration-script.js';
import { migrate, migrationStatus } from '#cyclone/store/migrator.js';
import { cycloneMigrations } from 'nestjs-cyclone';
import { ROOT } from '../structure/source-files.js';
import { createDatabase, openDataSource, type TestDatabase } from '../support/postgres.js';
import { describeSchema } from './describe-schema.js';

type Migrations = (new () => MigrationInterface)[];
type Mode = 'all' | 'each' | 'none';

let database: TestDatabase;
let client: pg.Client;
const open: DataSource[] = [];

beforeEach(async () => {
  database = await createDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterEach(async () => {
  for (const dataSource of open.splice(0)) await dataSource.destroy();
  await client.end();
  await database.drop();
});

async function typeorm(migrations: Migrations, extra: object = {}): Promise<DataSource> {
  const dataSource = await openDataSource(database.url, { migrations, extra, logging: false, logger: 'debug' });
  open.push(dataSource);
  return dataSource;
}
async function run(migrations: Migrations, transaction: Mode = 'all'): Promise<string[]> {
  const done = await (await typeorm(migrations)).runMigrations({ transaction });
  return done.map(({ name }) => name);
}
const names = (schema?: string) =>
  cycloneMigrations(schema === undefined ? {} : { schema }).map((one) => new one().name ?? '');

/** A migration of the application. */
function ofApplication(name: string, up: (queryRunner: QueryRunner) => Promise<unknown>): new () => MigrationInterface {
  return class implements MigrationInterface {
    readonly name = name;
    async up(queryRunner: QueryRunner): Promise<void> {
      await up(queryRunner);
    }
    async down(): Promise<void> {}
  };
}

const WAYS: Record<string, (schema: string) => Promise<unknown>> = {
  'cyclone migrate': (schema) => migrate(client, { schema }),
  'cyclone migrate sql': (schema) => client.query(migrationSql(schema)),
  TypeORM: (schema) => run(cycloneMigrations({ schema })),
};

describe('the three ways to migrate', () => {
  it.each(['public', `a"b'c$$d`])('make the same schema in %j', async (schema) => {
    const found: Record<string, unknown> = {};
    for (const [way, apply] of Object.entries(WAYS)) {
      const name = quoteIdentifier(schema);
      await client.query(`drop schema if exists ${name} cascade; create schema ${name}`);
      await apply(schema);
      found[way] = await describeSchema(client, schema);
    }
    expect(Object.keys(found['TypeORM'] as object).length).toBeGreaterThan(300);
    expect(found['cyclone migrate sql']).toEqual(found['cyclone migrate']);
    expect(found['TypeORM']).toEqual(found['cyclone migrate']);
  });

  it.each(Object.keys(WAYS))('find nothing left to do after %s, and change nothing', async (first) => {
    await WAYS[first]?.('flow');
    const before = await describeSchema(client, 'flow');
    for (const apply of Object.values(WAYS)) {
      await apply('flow');
      expect(await describeSchema(client, 'flow')).toEqual(before);
    }
    expect(await migrate(client, { schema: 'flow' })).toMatchObject({ applied: [], functionsInstalled: false });
    expect(await run(cycloneMigrations({ schema: 'flow' }))).toEqual([]);
  });

  it.each(Object.keys(WAYS))('go on from an older schema by %s', async (way) => {
    await client.query(readFileSync(join(ROOT, 'migrations/0001_tables.sql'), 'utf8'));
    await WAYS[way]?.('public');
    expect(await migrationStatus(client)).toMatchObject({
      version: SCHEMA_VERSION,
      missing: [],
      functionsCurrent: true,
      problem: undefined,
    });
  });
});

describe('cycloneMigrations', () => {
  it('has a class for each version, whose name never changes, and one for the functions, in this order', () => {
    expect(names().slice(0, -1)).toEqual(['CycloneTables1700000000001', 'CycloneViews1700000000002']);
    expect(names()).toHaveLength(SCHEMA_VERSION + 1);
    expect(names().at(-1)).toMatch(/^CycloneFunctions_[0-9a-f]{12}_1700000999999$/);
    expect(names('flow')[0]).toBe('CycloneTables_flow_1700000000001');
  });

  it.each<Mode>(['all', 'each', 'none'])('works with the transaction mode %s', async (transaction) => {
    expect(await run(cycloneMigrations(), transaction)).toEqual(names());
    expect(await migrationStatus(client)).toMatchObject({ pending: [], functionsCurrent: true, problem: undefined });
  });

  it('works beside migrations of the application, and leaves them their settings', async () => {
    const settings = `select current_setting('search_path') as path, current_setting('lock_timeout') as lock,
      current_setting('statement_timeout') as statement, current_setting('check_function_bodies') as bodies`;
    const seen: unknown[] = [];
    const look = (timestamp: number) =>
      ofApplication(`Look${timestamp}`, async (queryRunner) => seen.push(...(await queryRunner.query(settings))));
    const dataSource = await typeorm(
      [look(1_600_000_000_000), ...cycloneMigrations({ schema: 'flow' }), look(1_800_000_000_000)],
      {
        options: '-c lock_timeout=17s',
      },
    );
    await dataSource.runMigrations({ transaction: 'all' });
    expect(seen).toEqual([seen[0], seen[0]]);
    expect(seen[0]).toMatchObject({ lock: '17s', bodies: 'on' });
  });

  it('takes part in the transaction of all migrations: one that fails leaves nothing', async () => {
    const fails = ofApplication('Fails1800000000000', (queryRunner) => queryRunner.query('select nothing'));
    await expect(run([...cycloneMigrations(), fails])).rejects.toThrow('nothing');
    expect(await migrationStatus(client)).toMatchObject({ version: null });
  });

  it('serves several schemas in one DataSource', async () => {
    const applied = await run([...cycloneMigrations({ schema: 'one' }), ...cycloneMigrations({ schema: 'two' })]);
    expect(new Set(applied).size).toBe(2 * names().length);
    for (const schema of ['one', 'two'])
      expect(await migrationStatus(client, { schema })).toMatchObject({ functionsCurrent: true, problem: undefined });
  });

  it('brings new functions to whom an upgrade gave other ones, although no version changed', async () => {
    await run(cycloneMigrations());
    const old = 'CycloneFunctions_000000000000_1700000999999';
    await client.query(`update migrations set name = $1 where name ~ 'Functions'`, [old]);
    await client.query(`update cyclone_schema_version set functions = 'older'`);
    await client.query('drop function cyclone_flush');
    expect(await run(cycloneMigrations())).toEqual(names().slice(-1));
    expect(await migrationStatus(client)).toMatchObject({ functionsCurrent: true, problem: undefined });
  });

  it('leaves a newer schema alone when it works with this library, and refuses it when not (R22)', async () => {
    await migrate(client);
    await client.query(`insert into cyclone_schema_version values ($1, 'next', 1, 'newer')`, [SCHEMA_VERSION + 1]);
    const before = await describeSchema(client, 'public');
    expect(await run(cycloneMigrations())).toEqual(names());
    expect(await describeSchema(client, 'public')).toMatchObject(before);
    await client.query(`delete from migrations; update cyclone_schema_version set compatible_from = version`);
    await expect(run(cycloneMigrations())).rejects.toThrow(SchemaVersionError);
  });

  it('does not go back, and says what to do', async () => {
    const dataSource = await typeorm(cycloneMigrations());
    await dataSource.runMigrations();
    const error: unknown = await dataSource.undoLastMigration().catch((reason: unknown) => reason);
    expect(IrreversibleMigrationError.is(error)).toBe(true);
    expect((error as Error).message).toMatch(/hold the runs.*migration:revert --fake/);
    expect(await migrationStatus(client)).toMatchObject({ pending: [], functionsCurrent: true, problem: undefined });
  });

  it('refuses a stricter isolation, under which it would not see what another process has done (R22)', async () => {
    const dataSource = await typeorm(cycloneMigrations(), { options: '-c default_transaction_isolation=serializable' });
    await expect(dataSource.runMigrations()).rejects.toThrow(UnsafeIsolationError);
    expect(await migrationStatus(client)).toMatchObject({ version: null });
  });

  it('refuses a schema name that Postgres does not take', () => {
    expect(() => cycloneMigrations({ schema: 'pg_flow' })).toThrow('must not be "pg_flow"');
  });
});
