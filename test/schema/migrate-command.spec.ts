import pg from 'pg';
import { SCHEMA_VERSION } from '#cyclone/store/migration-files.js';
import { cyclone } from '../cli/command.js';
import { createDatabase, type TestDatabase } from '../support/postgres.js';

describe('cyclone migrate', () => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await createDatabase();
  });
  afterEach(() => database.drop());

  it('succeeds in eight processes at once on an empty database, and one of them does the work', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, () => cyclone(['migrate', '--database-url', database.url])),
    );
    expect(outcomes.map(({ code, stdout }) => `${code} ${stdout.trim()}`)).toEqual(
      Array.from({ length: 8 }, () => `0 ${SCHEMA_VERSION}`),
    );
    expect(outcomes.filter(({ stderr }) => stderr.includes('Applied 0001_tables.'))).toHaveLength(1);
    expect(outcomes.filter(({ stderr }) => stderr.includes('There is nothing to do.'))).toHaveLength(7);
  });

  it('tells with its exit code whether there is something to do', async () => {
    const { url } = database;
    const before = await cyclone(['migrate', 'status', '--schema', 'my-Schema'], { url });
    expect(before.code).toBe(6);
    expect(before.stdout).toContain('pending       0001_tables 0002_views');
    expect(before.stderr).toContain('npx nestjs-cyclone migrate --schema my-Schema');
    expect((await cyclone(['migrate', '--schema', 'my-Schema'], { url })).code).toBe(0);
    expect(await cyclone(['migrate', '--status', '--schema', 'my-Schema'], { url })).toMatchObject({
      code: 0,
      stderr: '',
    });
    const { stdout } = await cyclone(['migrate', 'status', '--format', 'json', '--schema', 'my-Schema'], { url });
    expect(JSON.parse(stdout)).toMatchObject({
      version: SCHEMA_VERSION,
      pending: [],
      functionsCurrent: true,
      problem: null,
    });
  });

  it('prints a script that an administrator can run', async () => {
    const { code, stdout, stderr } = await cyclone(['migrate', 'sql', '--schema', "o'brien"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query(stdout);
    await client.end();
    const rest = await cyclone(['migrate', '--sql', '--from', String(SCHEMA_VERSION)]);
    expect(rest.stdout).not.toContain('create table cyclone_runs');
    expect((await cyclone(['migrate', 'status', '--schema', "o'brien"], { url: database.url })).code).toBe(0);
  });

  it('never shows the password, whatever goes wrong', async () => {
    const wrong = new URL(database.url);
    const { password } = wrong;
    wrong.pathname = '/nowhere';
    const unknown = await cyclone(['migrate'], { url: wrong.href });
    expect(unknown).toMatchObject({ code: 3, stdout: '' });
    expect(unknown.stderr).toContain('"nowhere" does not exist');
    expect(unknown.stderr).not.toContain(`:${password}@`);
    wrong.password = 's3cret';
    wrong.port = '1';
    const refused = await cyclone(['migrate', '--database-url', wrong.href]);
    expect(refused).toMatchObject({ code: 3, stdout: '' });
    expect(refused.stderr).toContain(`Cannot connect to postgres://postgres@127.0.0.1:1/nowhere`);
    const malformed = await cyclone(['migrate', '--database-url', 'postgres//u:s3cret@h']);
    expect(malformed.code).toBe(2);
    for (const { stdout, stderr } of [refused, malformed]) expect(stdout + stderr).not.toContain('s3cret');
  });
});

describe('a wrong command line', () => {
  it.each([
    [[], 'Usage: cyclone'],
    [['toString'], "unknown command 'toString'"],
    [['migrate', 'now'], 'Allowed choices are up, status, sql'],
    [['migrate', '--fast'], '--fast'],
    [['migrate', '--sql', '--status'], 'exclude each other'],
    [['migrate'], 'No database'],
    [['migrate', '--schema', 'pg_x', '--sql'], '--schema (or CYCLONE_SCHEMA) must not be "pg_x"'],
    [['migrate', '--database-url', 'mysql://h/db'], 'must begin with postgres://'],
  ])('cyclone %j ends with exit code 2 and says why', async (args, why) => {
    const { code, stdout, stderr } = await cyclone(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(why);
  });

  it('cyclone --help shows the usage on stdout', async () => {
    const { code, stdout } = await cyclone(['--help']);
    expect(code).toBe(0);
    expect(stdout).toContain('migrate [options] [what]');
  });
});
