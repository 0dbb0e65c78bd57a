import pg from 'pg';
import { SchemaVersionError } from '#cyclone/model/errors/index.js';
import { examine } from '#cyclone/store/doctor/doctor.js';
import { InspectionStore } from '#cyclone/store/inspection-store.js';
import { SCHEMA_VERSION, shippedMigrations } from '#cyclone/store/migration-files.js';
import { migrationSql } from '#cyclone/store/migration-script.js';
import { migrate, migrationStatus } from '#cyclone/store/migrator.js';
import { OperationsStore } from '#cyclone/store/operations-store.js';
import type { RawClient } from '#cyclone/store/raw-client.js';
import { checkServer } from '#cyclone/store/server-check.js';
import { Session } from '#cyclone/store/session.js';
import { cyclone } from '../cli/command.js';
import { createDatabase, type TestDatabase } from '../support/postgres.js';

const NAMES = shippedMigrations().files.map(({ name }) => name);

let database: TestDatabase;
let client: pg.Client;
beforeEach(async () => {
  database = await createDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterEach(async () => {
  await client.end();
  await database.drop();
});

const rows = async (sql: string): Promise<Record<string, unknown>[]> => (await client.query(sql)).rows;
const start = () => checkServer(async (sql, values) => (await client.query(sql, values)).rows, 'public');
const doctor = async () => {
  const session = new Session(client as unknown as RawClient, { preparedStatements: true });
  return examine(session, 'public', new InspectionStore('public'), new OperationsStore('public'));
};

/** What a test suite does that empties every table. */
async function truncateAll(): Promise<void> {
  const tables = await rows(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables where tablename ~ '^cyclone_'`,
  );
  await client.query(`truncate ${tables.map(({ name }) => name).join(', ')}`);
}

/** What the migrations write into their own tables. */
const written = async () => ({
  versions: await rows('select version, name, compatible_from from cyclone_schema_version order by version'),
  marks: await rows('select name from cyclone_marks order by name'),
});

describe('a schema whose record of its version is gone (F16)', () => {
  it.each([
    ['every table was emptied', truncateAll],
    ['the table of versions was dropped', () => client.query('drop table cyclone_schema_version')],
    [
      'the record ends with an older version',
      () => client.query('delete from cyclone_schema_version where version > 1'),
    ],
    [
      'every table was emptied and the functions were dropped',
      async () => {
        await truncateAll();
        await client.query('drop routine cyclone_flush');
      },
    ],
  ])('is recognised by start, doctor, status and migrate, and recorded again by --adopt: %s', async (_, damage) => {
    await migrate(client);
    const before = await written();
    await client.query(`insert into cyclone_workers values ('w', 'h', 1, '1', '{}', '{}', now(), now())`);
    await damage();

    const told = [
      (await start())[0],
      await migrate(client).catch((error: unknown) => error),
      (await migrationStatus(client)).problem,
    ];
    for (const problem of told) {
      expect(problem).toBeInstanceOf(SchemaVersionError);
      expect((problem as Error).message).toContain('npx nestjs-cyclone migrate --adopt');
      expect((problem as Error).message).not.toContain('tables are missing');
    }
    expect((await doctor()).find(({ check }) => check === 'schema')).toMatchObject({
      level: 'error',
      message: expect.stringContaining('cyclone_schema_version'),
      advice: expect.stringContaining('migrate --adopt'),
    });
    await expect(client.query(migrationSql())).rejects.toThrow(/migrate --adopt|already exists/);
    await client.query('rollback');

    const workers = await rows('select id from cyclone_workers');
    const adopted = await cyclone(['migrate', '--adopt'], { url: database.url });
    expect(adopted).toMatchObject({ code: 0, stdout: `${SCHEMA_VERSION}\n` });
    expect(adopted.stderr).toContain(`Recorded version ${SCHEMA_VERSION} again`);
    expect(await written()).toEqual(before);
    expect(await rows('select id from cyclone_workers')).toEqual(workers);
    expect(await start()).toEqual([]);
    expect((await doctor()).filter(({ level }) => level === 'error')).toEqual([]);
    expect(await migrate(client, { adopt: true })).toEqual({
      version: SCHEMA_VERSION,
      applied: [],
      functionsInstalled: false,
    });
    expect(await rows('select relname from pg_class where relnamespace = pg_my_temp_schema()')).toEqual([]);
  });

  it('is recorded with the version that it has, and brought to that of the library', async () => {
    const [first] = shippedMigrations().files;
    await client.query(first?.sql ?? '');
    await client.query('truncate cyclone_schema_version');
    const said: string[] = [];
    const result = await migrate(client, { adopt: true, log: (message) => said.push(message) });
    expect(result).toMatchObject({ version: SCHEMA_VERSION, applied: NAMES.slice(1) });
    expect(said[0]).toContain('Recorded version 1 again');
  });

  it.each([
    ['alter table cyclone_steps drop column progress cascade', 'column cyclone_steps.progress'],
    ['alter table cyclone_steps alter column queue drop not null', 'column cyclone_steps.queue'],
    ['alter table cyclone_steps add column mine int', 'column cyclone_steps.mine'],
    ['drop index cyclone_steps_claim', 'index cyclone_steps_claim'],
    ['alter table cyclone_runs drop constraint cyclone_runs_state_known', 'constraint cyclone_runs_state_known'],
    ['drop table cyclone_marks', 'cyclone_marks'],
    [
      `create or replace view cyclone_v_runs as select id, workflow, state, open_steps, uncontained_discards, result_node, once_key, parent_run_id,
       parent_node, tags, created_at, starts_at, deadline_at, deadline_ms, paused_at, failed_at, cancelled_at, finished_at, null::text as cancel_reason
       from cyclone_runs`,
      'view cyclone_v_runs',
    ],
  ])('is not recorded when it is another one: %s', async (change, named) => {
    await migrate(client);
    await truncateAll();
    await client.query(change);
    await expect(migrate(client, { adopt: true })).rejects.toThrow(named);
    await expect(migrate(client, { adopt: true })).rejects.toThrow('was not recorded');
    expect(await rows('select version from cyclone_schema_version')).toEqual([]);
  });

  it('may have an index more, which harms nothing, and another schema beside it', async () => {
    await migrate(client, { schema: 'my Flow' });
    await client.query('create index mine on "my Flow".cyclone_runs (created_at)');
    await truncateAll();
    await migrate(client);
    expect(await migrate(client, { schema: 'my Flow', adopt: true })).toMatchObject({
      version: SCHEMA_VERSION,
      applied: [],
    });
    expect((await migrationStatus(client, { schema: 'my Flow' })).problem).toBeUndefined();
  });

  it('needs no record when it is only functions that are gone: migrate installs them again', async () => {
    await migrate(client);
    await client.query('drop routine cyclone_explain');
    expect((await start())[0]?.message).toContain('Functions of the engine are missing');
    expect(await migrate(client)).toEqual({ version: SCHEMA_VERSION, applied: [], functionsInstalled: true });
    expect(await start()).toEqual([]);
  });

  it('is adopted by a role that may not create schemas', async () => {
    await migrate(client);
    await truncateAll();
    const role = `role_${database.name}`;
    await client.query(`create role ${role}; alter schema public owner to ${role}`);
    try {
      for (const { kind, name } of await rows(
        `select case relkind when 'v' then 'view' else 'table' end as kind, relname as name from pg_class where relname ~ '^cyclone_' and relkind in ('r', 'v')`,
      ))
        await client.query(`alter ${String(kind)} ${String(name)} owner to ${role}`);
      for (const { name } of await rows(
        `select oid::regprocedure as name from pg_proc where pronamespace = 'public'::regnamespace`,
      ))
        await client.query(`alter routine ${String(name)} owner to ${role}`);
      await client.query(`set role ${role}`);
      expect(await migrate(client, { adopt: true })).toMatchObject({ version: SCHEMA_VERSION });
    } finally {
      await client.query(`reset role; reassign owned by ${role} to postgres; drop owned by ${role}; drop role ${role}`);
    }
  });
});

describe('tables in another schema (F24)', () => {
  it('are named by start, doctor and command, which makes no second installation by mistake', async () => {
    await migrate(client, { schema: 'flows' });
    expect((await start())[0]?.message).toMatch(
      /tables are missing in the schema "public"; there are some in "flows"\. Set schema: "flows"/,
    );
    expect((await doctor()).find(({ check }) => check === 'schema')?.advice).toContain(
      '--schema flows or CYCLONE_SCHEMA',
    );
    const { url } = database;
    const [stats, up] = await Promise.all([cyclone(['stats'], { url }), cyclone(['migrate'], { url })]);
    for (const { code, stderr } of [stats, up]) {
      expect(code).toBe(3);
      expect(stderr).toContain('there are some in "flows"');
    }
    expect((await migrationStatus(client)).version).toBeNull();

    const env = { CYCLONE_SCHEMA: 'flows' };
    const [named, byFlag] = await Promise.all([
      cyclone(['runs', 'list'], { url, env }),
      cyclone(['runs', 'list', '--schema', 'flows'], { url, env: { CYCLONE_SCHEMA: 'nowhere' } }),
    ]);
    expect([named.code, byFlag.code]).toEqual([0, 0]);
    const second = await cyclone(['migrate', '--schema', 'public'], { url });
    expect(second.code).toBe(0);
    expect(second.stderr).toContain('The schema "flows" has a Cyclone too; this is another one.');
    expect(await start()).toEqual([]);
  });
});
