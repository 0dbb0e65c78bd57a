import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { InvalidOptionError, SchemaVersionError } from '#cyclone/model/errors/index.js';
import { quoteIdentifier } from '#cyclone/store/identifier.js';
import { SCHEMA_VERSION } from '#cyclone/store/migration-files.js';
import { migrationSql } from '#cyclone/store/migration-script.js';
import { migrate, migrationStatus } from '#cyclone/store/migrator.js';
import { createDatabase, openDataSource, type TestDatabase } from '../support/postgres.js';
import { ROOT } from '../structure/source-files.js';

const SHIPPED = join(ROOT, 'migrations');
const FUNCTIONS = readdirSync(join(SHIPPED, 'functions')).map((file) => file.replace('.sql', ''));
const FILES = readdirSync(SHIPPED)
  .filter((file) => file.endsWith('.sql'))
  .map((file) => file.replace('.sql', ''))
  .toSorted();

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await createDatabase();
});

beforeEach(async () => {
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});

/** The next test finds an empty database. */
afterEach(async () => {
  await client.query('reset all');
  const schemas = await column(
    `select nspname from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'`,
  );
  for (const schema of schemas) await client.query(`drop schema ${quoteIdentifier(String(schema))} cascade`);
  await client.query('create schema public');
  await client.end();
});

afterAll(() => database.drop());

/** All rows of the first column. */
async function column(sql: string, values: unknown[] = []): Promise<unknown[]> {
  const { rows } = await client.query({ text: sql, values, rowMode: 'array' });
  return rows.map(([value]) => value);
}

/** Submits a one-node run and claims it, through the functions of a schema, with a search_path that does not know it. */
async function claimsWork(schema: string): Promise<boolean> {
  const name = quoteIdentifier(schema);
  await client.query(`set search_path = pg_catalog`);
  await client.query(
    `select * from ${name}.cyclone_submit(null, '{w}', '{null}', '{null}', '{null}', '{null}', '{null}', '{1}', '{a}', '{step}', '{k}', '{q}', '{0}',
       '{"{}"}', '{null}', '{0}', '{0}', '{5}', '{null}', '{}', '{}', '{}')`,
  );
  const events = await column(
    `select event from ${name}.cyclone_flush('me', 30000, '{}', '{}', '{}', '{}', '{q}', '{1}', '{k}', 4194304)`,
  );
  await client.query('reset search_path');
  return events.join() === 'claimed';
}

describe('migrate', () => {
  it('makes the whole schema in an empty database, with every table and function', async () => {
    const said: string[] = [];
    const result = await migrate(client, { log: (message) => said.push(message) });
    expect(result).toEqual({ version: SCHEMA_VERSION, applied: FILES, functionsInstalled: true });
    expect(said).toEqual([...FILES.map((file) => `Applied ${file}.`), `Installed ${FUNCTIONS.length} functions.`]);
    expect(await claimsWork('public')).toBe(true);
    const installed = await column(`select proname from pg_proc where pronamespace = 'public'::regnamespace`);
    expect(installed.toSorted()).toEqual(FUNCTIONS.toSorted());
  });

  it('knows the version of the last file', () => {
    expect(FILES.map((file) => Number.parseInt(file, 10))).toEqual(
      Array.from({ length: SCHEMA_VERSION }, (_, i) => i + 1),
    );
  });

  it('does nothing the second time', async () => {
    await migrate(client);
    const before = await column(`select xmin::text from pg_proc where pronamespace = 'public'::regnamespace`);
    expect(await migrate(client)).toEqual({ version: SCHEMA_VERSION, applied: [], functionsInstalled: false });
    expect(await column(`select xmin::text from pg_proc where pronamespace = 'public'::regnamespace`)).toEqual(before);
  });

  it('waits for others who migrate the same schema, and then finds nothing left to do', async () => {
    const clients = Array.from({ length: 8 }, () => new pg.Client({ connectionString: database.url }));
    await Promise.all(clients.map((other) => other.connect()));
    const results = await Promise.all(clients.map((other) => migrate(other, { schema: 'flow' })));
    await Promise.all(clients.map((other) => other.end()));
    expect(results.filter(({ functionsInstalled }) => functionsInstalled)).toHaveLength(1);
    expect(results.map(({ version }) => version)).toEqual(results.map(() => SCHEMA_VERSION));
  });

  it('works through a DataSource of the application, and gives its connection back', async () => {
    const dataSource = await openDataSource(database.url, { poolSize: 1 });
    await migrate(dataSource, { schema: 'flow' });
    await dataSource.query('select 1');
    expect(await migrationStatus(dataSource, { schema: 'flow' })).toMatchObject({
      version: SCHEMA_VERSION,
      pending: [],
      functionsCurrent: true,
      problem: undefined,
    });
    await dataSource.destroy();
  });

  it.each(['my-Schema', "o'brien", 'a$$b', 'a"b', 'a\\b', 'Ünïcode', 'x'.repeat(63)])(
    'works in the schema %j, beside another one (S61)',
    async (schema) => {
      await migrate(client, { schema });
      await migrate(client, { schema: 'other' });
      expect(await claimsWork(schema)).toBe(true);
      expect(await column(`select count(*)::int from other.cyclone_runs`)).toEqual([0]);
    },
  );

  it.each(['', 'x'.repeat(64), 'pg_flow', 'a\0b'])(
    'refuses the schema %j before it talks to the database (S61)',
    async (schema) => {
      await expect(migrate(client, { schema })).rejects.toThrow(InvalidOptionError);
      expect(() => migrationSql(schema)).toThrow(InvalidOptionError);
    },
  );

  it('lets nobody but the owner call the functions, and keeps what an administrator granted (C15)', async () => {
    const role = quoteIdentifier(`role_${database.name}`);
    await client.query(`create role ${role}`);
    try {
      await migrate(client);
      const callable = `select proname from pg_proc
        where pronamespace = 'public'::regnamespace and has_function_privilege('${role.replaceAll('"', '')}', oid, 'execute')`;
      expect(await column(callable)).toEqual([]);
      await client.query(`grant execute on all functions in schema public to ${role}`);
      await client.query(`update cyclone_schema_version set functions = 'other'`);
      await migrate(client);
      expect((await column(callable)).toSorted()).toEqual(FUNCTIONS.toSorted());
    } finally {
      await client.query(`drop owned by ${role}; drop role ${role}`);
    }
  });

  it('pins the search_path of every function that touches tables to its schema (C15)', async () => {
    await migrate(client, { schema: 'flow' });
    const unpinned = await column(
      `select proname from pg_proc p join pg_language l on l.oid = prolang
        where pronamespace = 'flow'::regnamespace and prosrc ~ 'cyclone_(runs|steps|deps|attempts|workers)'
          and not coalesce(proconfig @> array['search_path=flow, pg_temp'], false)`,
    );
    // It runs inside functions that have pinned it already, once for each promoted node.
    expect(unpinned).toEqual(['cyclone_resolve_input']);
  });

  it('replaces the functions when they are not those of the library', async () => {
    await migrate(client);
    await client.query(
      `create or replace function cyclone_backoff(p_backoff jsonb, p_attempt int) returns bigint language sql volatile as 'select 7::bigint'`,
    );
    await client.query(`update cyclone_schema_version set functions = 'other' where version = ${SCHEMA_VERSION}`);
    expect(await migrationStatus(client)).toMatchObject({ pending: [], functionsCurrent: false, problem: undefined });
    expect(await migrate(client)).toMatchObject({ applied: [], functionsInstalled: true });
    expect(await column('select cyclone_backoff(null, 1) <> 7')).toEqual([true]);
  });

  it('leaves a newer schema and its functions alone when they work with this library', async () => {
    await migrate(client);
    await client.query(`insert into cyclone_schema_version values (${SCHEMA_VERSION + 1}, 'next', 1, 'newer')`);
    expect(await migrate(client)).toEqual({ version: SCHEMA_VERSION + 1, applied: [], functionsInstalled: false });
    expect(await migrationStatus(client)).toMatchObject({ problem: undefined });
  });

  it('refuses a newer schema that does not work with this library (R22)', async () => {
    await migrate(client);
    await client.query(`insert into cyclone_schema_version values ($1, 'next', $1)`, [SCHEMA_VERSION + 1]);
    await expect(migrate(client)).rejects.toThrow(SchemaVersionError);
    await expect(migrate(client)).rejects.toThrow('upgrade nestjs-cyclone');
  });

  it('changes nothing when a file fails, and says which one', async () => {
    await client.query('create type cyclone_v_runs as (one int)');
    await expect(migrate(client)).rejects.toThrow('The migration 0002_views failed, nothing was changed');
    expect(await column(`select relname from pg_class where relname ~ '^cyclone_' and relkind = 'r'`)).toEqual([]);
    await client.query('drop type cyclone_v_runs');
    expect(await migrate(client)).toMatchObject({ applied: FILES });
  });

  it('does not depend on the settings of the role: isolation, read only, timeouts, checked bodies', async () => {
    await client.query(`set default_transaction_isolation = 'repeatable read'; set default_transaction_read_only = on;
      set check_function_bodies = on; set search_path = nowhere; set lock_timeout = '1ms'; set statement_timeout = '1s'`);
    await migrate(client);
    const settings = await column(
      `select setting from pg_settings where name in ('search_path', 'lock_timeout') order by name`,
    );
    expect(settings).toEqual(['1', 'nowhere']);
  });

  it('lets a role without the right to create schemas migrate the schema that it owns', async () => {
    const role = quoteIdentifier(`role_${database.name}`);
    await client.query(`create role ${role}; create schema mine authorization ${role}; set role ${role}`);
    try {
      expect(await migrate(client, { schema: 'mine' })).toMatchObject({ applied: FILES });
      await expect(migrate(client, { schema: 'theirs' })).rejects.toThrow('permission denied');
    } finally {
      await client.query(`reset role; drop schema mine cascade; drop role ${role}`);
    }
  });

  it('refuses a pool, whose statements would not share the transaction', async () => {
    const pool = new pg.Pool({ connectionString: database.url });
    await expect(migrate(pool)).rejects.toThrow(InvalidOptionError);
    await pool.end();
  });
});

describe('migrationSql', () => {
  it('is a script that does the same as migrate, for a schema with an awkward name (S61)', async () => {
    const schema = `a"b'c$$d`;
    await client.query(migrationSql(schema));
    expect(await migrationStatus(client, { schema })).toMatchObject({ pending: [], functionsCurrent: true });
    expect(await migrate(client, { schema })).toMatchObject({ applied: [], functionsInstalled: false });
    expect(await claimsWork(schema)).toBe(true);
  });

  it('goes on from a version, or from whatever it finds', async () => {
    await client.query(migrationSql());
    await client.query(migrationSql('public', { from: SCHEMA_VERSION }));
    await client.query(migrationSql());
    expect(await migrationStatus(client)).toMatchObject({ problem: undefined });
    await client.query('drop schema public cascade; create schema public');
    for (const file of FILES.slice(0, 1)) await client.query(readFileSync(join(SHIPPED, `${file}.sql`), 'utf8'));
    await client.query(migrationSql());
    expect(await migrationStatus(client)).toMatchObject({ pending: [], functionsCurrent: true, problem: undefined });
  });

  it('changes nothing of a newer schema', async () => {
    await migrate(client);
    await client.query(`insert into cyclone_schema_version values ($1, 'next', 1, 'newer')`, [SCHEMA_VERSION + 1]);
    await expect(client.query(migrationSql())).rejects.toThrow('newer than this script');
    await client.query('rollback');
    expect(await column('select functions from cyclone_schema_version order by version desc')).toContain('newer');
  });
});

describe('migrationStatus', () => {
  it('says what is missing and what to do (R22)', async () => {
    const status = await migrationStatus(client, { schema: "o'brien" });
    expect(status).toMatchObject({ version: null, pending: FILES, functionsCurrent: false });
    expect(status.problem?.message).toContain(`npx nestjs-cyclone migrate --schema 'o'\\''brien'`);
    expect(status.problem?.message).toContain('migrationsRun: true');
  });

  it('tells an older schema, a migration that was left out and missing functions (R22)', async () => {
    await migrate(client);
    const [last] = FILES.slice(-1);
    await client.query('drop view cyclone_v_runs, cyclone_v_steps, cyclone_v_kinds, cyclone_v_dlq'); // all of the last one
    await client.query(`update cyclone_schema_version set version = version + 1 where version = ${SCHEMA_VERSION}`);
    expect((await migrationStatus(client)).pending).toEqual([last]);
    const gap = `Migration ${SCHEMA_VERSION} was never applied`;
    expect((await migrationStatus(client)).problem?.message).toContain(gap);
    await client.query(`delete from cyclone_schema_version where version > 1`);
    expect(await migrationStatus(client)).toMatchObject({
      pending: FILES.slice(1),
      problem: { found: 1, required: SCHEMA_VERSION },
    });
    await client.query(
      `insert into cyclone_schema_version select g, 'applied', 1 from generate_series(2, ${SCHEMA_VERSION}) g`,
    );
    await client.query(`alter function cyclone_flush rename to gone`);
    expect((await migrationStatus(client)).problem?.message).toContain('Functions of the engine are missing');
  });
});
