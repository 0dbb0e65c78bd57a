import pg from 'pg';
import { examine, type Finding } from '#cyclone/store/doctor/doctor.js';
import { EXPECTED_INDEXES, EXPECTED_TABLES } from '#cyclone/store/doctor/expected-schema.js';
import { InspectionStore } from '#cyclone/store/inspection-store.js';
import { SCHEMA_VERSION } from '#cyclone/store/migration-files.js';
import { migrate } from '#cyclone/store/migrator.js';
import { OperationsStore } from '#cyclone/store/operations-store.js';
import type { RawClient } from '#cyclone/store/raw-client.js';
import { Session } from '#cyclone/store/session.js';
import { EngineDatabase, type EngineSession } from '../support/engine-sql.js';
import { sessionOf } from '../support/session-of.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

const inspection = new InspectionStore('public');
const operations = new OperationsStore('public');

const findingsOf = (session: EngineSession = db): Promise<Finding[]> =>
  examine(sessionOf(session), 'public', inspection, operations);

/** What is not in order, as `check level`; the functions that the tests replace and the missing worker are left out. */
async function problems(session: EngineSession = db): Promise<string[]> {
  return (await findingsOf(session))
    .filter(({ level, check }) => level !== 'ok' && check !== 'functions' && check !== 'workers')
    .map(({ check, level, advice }) => {
      expect(advice).toMatch(/\w/);
      return `${check} ${level}`;
    });
}

const worker = (id: string, kinds: string[]) =>
  db.call('cyclone_register_worker', id, 'host', 1, '1', '{"default": 5}', kinds);

/** Makes the change, looks, and undoes it. */
async function during(change: string, undo: string): Promise<string[]> {
  await db.client.query(change);
  try {
    return await problems();
  } finally {
    await db.client.query(undo);
  }
}

describe('the doctor', () => {
  it('finds nothing wrong with a fresh schema, and says so for every check', async () => {
    const fresh = new pg.Client({ connectionString: database.url });
    await fresh.connect();
    try {
      await migrate(fresh, { schema: 'fresh' });
      const session = new Session(fresh as unknown as RawClient, { preparedStatements: true });
      const findings = await examine(session, 'fresh', new InspectionStore('fresh'), new OperationsStore('fresh'));
      expect(findings.filter(({ level }) => level !== 'ok').map(({ message }) => message)).toEqual([
        'No worker is alive.',
      ]);
      expect(findings.map(({ check }) => check)).toEqual([
        'isolation',
        'encoding',
        'session',
        'transactions',
        'clock',
        'rights',
        'schema',
        'tables',
        'functions',
        'vacuum',
        'stranded',
        'leases',
        'workers',
        'kinds',
      ]);
    } finally {
      await fresh.query('drop schema fresh cascade');
      await fresh.end();
    }
  });

  it('knows what the migrations make', async () => {
    const columns = await db.query<{ name: string; list: string }>(
      `select c.relname as name, string_agg(a.attname || ' ' || t.typname, ', ' order by a.attnum) as list
         from pg_class c join pg_attribute a on a.attrelid = c.oid join pg_type t on t.oid = a.atttypid
        where c.relnamespace = 'public'::regnamespace and c.relname ~ '^cyclone_' and c.relkind in ('r', 'v') and a.attnum > 0
        group by c.relname order by c.relname`,
    );
    expect(Object.fromEntries(columns.map(({ name, list }) => [name, list]))).toEqual(EXPECTED_TABLES);
    const indexes = await db.query<{ relname: string }>(
      `select i.relname from pg_index x join pg_class i on i.oid = x.indexrelid
        where i.relnamespace = 'public'::regnamespace and i.relname ~ '^cyclone_' order by 1`,
    );
    expect(indexes.map(({ relname }) => relname)).toEqual(EXPECTED_INDEXES);
  });

  it('finds a default isolation that strands runs: of the session, the database or a role', async () => {
    expect(
      await during(`set default_transaction_isolation = 'repeatable read'`, 'reset default_transaction_isolation'),
    ).toEqual(['isolation error']);
    const name = await db.value<string>('select current_database()');
    expect(
      await during(
        `alter database ${name} set default_transaction_isolation = 'serializable'; alter role postgres in database ${name} set default_transaction_isolation = 'serializable'`,
        `alter database ${name} reset all; alter role postgres in database ${name} reset all`,
      ),
    ).toEqual(['isolation error', 'isolation error']);
  });

  it('finds columns and indexes that were changed by hand, and indexes that are invalid', async () => {
    expect(
      await during(
        'alter table cyclone_audit rename column detail to details',
        'alter table cyclone_audit rename column details to detail',
      ),
    ).toEqual(['tables error']);
    expect(
      await during('alter index cyclone_steps_claim rename to mine', 'alter index mine rename to cyclone_steps_claim'),
    ).toEqual(['indexes error']);
    expect(
      await during(
        `update pg_index set indisvalid = false where indexrelid = 'cyclone_audit_run'::regclass`,
        `update pg_index set indisvalid = true where indexrelid = 'cyclone_audit_run'::regclass`,
      ),
    ).toEqual(['indexes error']);
  });

  it.each([
    'quote_all_identifiers = on',
    `search_path = ''`,
    'search_path = pg_catalog, public',
    `datestyle = 'SQL, DMY'`,
    `intervalstyle = 'sql_standard'`,
    `timezone = 'Asia/Kolkata'`,
    'extra_float_digits = -15',
    'bytea_output = escape',
    'standard_conforming_strings = off',
    `lc_messages = 'C'`,
    'array_nulls = off',
    'enable_indexscan = off',
  ])('raises no false alarm where catalogs and values are printed otherwise: %s (F52)', async (setting) => {
    const [name] = setting.split(' ');
    // That each call has to set it right is no false one.
    const right = name === 'array_nulls' ? ['session warning'] : [];
    expect(await during(`set ${setting}`, `reset ${name}`)).toEqual(right);
  });

  it('finds functions that were changed by hand or by another version', async () => {
    const functions = async () => (await findingsOf()).find(({ check }) => check === 'functions');
    expect(await functions()).toMatchObject({ level: 'error', message: expect.stringContaining('cyclone_now') });
    await db.query(`update cyclone_schema_version set functions = 'other' where version = $1`, [SCHEMA_VERSION]);
    expect(await functions()).toMatchObject({ level: 'warning' });
    await db.query(
      `insert into cyclone_schema_version values ($1, 'next', 1, 'newer')`.replace('$1', String(SCHEMA_VERSION + 1)),
    );
    expect(await functions()).toMatchObject({ level: 'info' });
    await db.query('delete from cyclone_schema_version where version > $1', [SCHEMA_VERSION]);
    await migrate(db.client);
    expect(await functions()).toMatchObject({ level: 'ok' });
  });

  it('stops at a schema that does not fit, or is not there', async () => {
    const findings = await examine(sessionOf(db), 'nowhere', inspection, operations);
    expect(findings.at(-1)).toMatchObject({
      check: 'schema',
      level: 'error',
      advice: expect.stringContaining('npx nestjs-cyclone migrate --schema nowhere'),
    });
  });

  it('finds tables without autovacuum', async () => {
    expect(
      await during(
        'alter table cyclone_steps set (autovacuum_enabled = off)',
        'alter table cyclone_steps reset (autovacuum_enabled)',
      ),
    ).toEqual(['vacuum error']);
  });

  it('finds transactions that hold back vacuum, with the statement that ends them', async () => {
    const other = await database.open();
    await other.query('begin isolation level repeatable read');
    await other.query('select count(*) from cyclone_runs');
    // The check asks for five minutes; the clock of the server cannot be moved, so its own limit is.
    const { checkLongTransactions } = await import('#cyclone/store/doctor/server-checks.js');
    const young = await checkLongTransactions({
      schema: 'public',
      query: async (sql, values) => db.query(sql, values),
    });
    expect(young).toMatchObject([{ level: 'ok' }]);
    const old = await checkLongTransactions({ schema: 'public', query: async (sql) => db.query(sql, [0]) });
    expect(old).toMatchObject([
      { level: 'warning', advice: expect.stringContaining(`pg_terminate_backend(${other.pid})`) },
    ]);
    await other.query('rollback');
  });

  it('finds a clock that differs, and says that it does no harm to runs', async () => {
    const { checkClock } = await import('#cyclone/store/doctor/server-checks.js');
    const at = (ms: number) => checkClock({ schema: 'public', query: async () => [{ ms: String(Date.now() + ms) }] });
    expect(await at(0)).toMatchObject([{ level: 'ok' }]);
    expect(await at(60_000)).toMatchObject([{ level: 'warning', message: expect.stringContaining('ahead of') }]);
    expect(await at(-60_000)).toMatchObject([{ level: 'warning', message: expect.stringContaining('behind') }]);
  });

  it('finds rights that are missing: to call the functions, to end the sessions of workers (C3)', async () => {
    const role = `doctor_${Date.now()}`;
    await db.client.query(
      `create role ${role} login password 'x'; grant usage on schema public to ${role}; grant select on all tables in schema public to ${role}`,
    );
    const url = new URL(database.url);
    url.username = role;
    url.password = 'x';
    const client = new pg.Client({ connectionString: url.href });
    await client.connect();
    try {
      await db.query(`set application_name = 'cyclone:1:abc:1'`);
      const session = new Session(client as unknown as RawClient, { preparedStatements: true });
      const rights = (await examine(session, 'public', inspection, operations)).filter(
        ({ check }) => check === 'rights',
      );
      expect(rights).toEqual([
        expect.objectContaining({
          level: 'error',
          message: expect.stringMatching(/^Workers are connected as postgres.*waits for the transaction.*30 s/),
        }),
        expect.objectContaining({ level: 'error', message: expect.stringContaining('lacks rights') }),
      ]);
    } finally {
      await client.end();
      await db.client.query(`reset application_name; drop owned by ${role}; drop role ${role}`);
    }
  });

  it('finds sessions that cannot write, settings that each call has to set right, and limits that are reached (F10, F23, F49)', async () => {
    const readOnly = 'set session characteristics as transaction read';
    expect(await during(`${readOnly} only`, `${readOnly} write`)).toContain('session error');
    expect(await during('set array_nulls = off', 'reset array_nulls')).toEqual(['session warning']);
    const limit = `alter database ${new URL(database.url).pathname.slice(1)} connection limit`;
    expect(await during(`${limit} 1`, `${limit} -1`)).toEqual(['limits error']);
  });

  it('passes on what workers say that they suffer from (R41)', async () => {
    await worker('w', ['work']);
    await db.call('cyclone_tick', 'w', ['default'], ['work'], 20, false, 100, null, 1_000, [
      'A lane has no connection.',
    ]);
    const findings = await findingsOf();
    expect(findings).toContainEqual(
      expect.objectContaining({
        check: 'workers',
        level: 'error',
        message: expect.stringContaining('A lane has no connection.'),
      }),
    );
    expect((await inspection.workers(sessionOf(db)))[0]?.problems).toEqual(['A lane has no connection.']);
  });

  it('says that the clock of the database was set back (F52)', async () => {
    await database.moveClock(3_600_000);
    await worker('w', ['work']);
    await database.moveClock(0);
    expect((await findingsOf()).filter(({ check }) => check === 'clock')).toContainEqual(
      expect.objectContaining({ level: 'warning', message: expect.stringContaining('has been set back') }),
    );
  });

  it('says what cannot be checked instead of giving up', async () => {
    await db.client.query('alter table cyclone_workers rename to gone');
    try {
      const findings = await findingsOf();
      expect(findings.find(({ check }) => check === 'work')).toMatchObject({
        level: 'error',
        message: expect.stringContaining('cyclone_workers'),
      });
    } finally {
      await db.client.query('alter table gone rename to cyclone_workers');
    }
  });

  it('finds stranded runs, leases that nobody takes back, dead workers and work that nobody serves', async () => {
    await worker('w', ['other']);
    await db.submit({ a: [] });
    await db.claim({ owner: 'w' });
    await db.submit({ b: { kind: 'mail' } });
    const run = await db.submit({ x: { kind: 'other' } });
    await db.query('set session_replication_role = replica');
    await db.query(`update cyclone_steps set state = 'completed', finished_at = now() where run_id = $1`, [run]);
    await db.query('set session_replication_role = origin');
    await database.moveClock(90_000);
    await db.checkStranded();
    const findings = (await findingsOf()).filter(({ level, check }) => level !== 'ok' && check !== 'functions');
    expect(findings.map(({ check, level }) => `${check} ${level}`)).toEqual([
      'stranded error',
      'leases error',
      'workers warning',
      'workers warning',
      'kinds warning',
    ]);
    expect(findings[0]?.message).toContain(run);
    expect(findings[1]?.advice).toContain('start one');
    expect(findings[4]?.message).toContain('Nobody serves kind "mail" in queue "default": 1 step(s) are due');
    await operations.repairRun(sessionOf(db), run, { actor: null, reason: null });
  });
});
