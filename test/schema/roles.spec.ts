import pg from 'pg';
import { MissingRightsError } from '#cyclone/model/errors/index.js';
import { examine, type Finding } from '#cyclone/store/doctor/doctor.js';
import { InspectionStore } from '#cyclone/store/inspection-store.js';
import { migrate } from '#cyclone/store/migrator.js';
import { OperationsStore } from '#cyclone/store/operations-store.js';
import type { RawClient } from '#cyclone/store/raw-client.js';
import { missingGrants, rolesSql } from '#cyclone/store/roles.js';
import { checkServer } from '#cyclone/store/server-check.js';
import { Session } from '#cyclone/store/session.js';
import { cyclone } from '../cli/command.js';
import { EngineSession } from '../support/engine-sql.js';
import { createDatabase, type TestDatabase } from '../support/postgres.js';
import { TEST_ROLES } from '../support/test-roles.mjs';
import { urlOf } from '../support/worker-role.js';

const { worker, viewer } = TEST_ROLES;

let database: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await createDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await migrate(client);
  await client.query('revoke usage on schema public from public'); // which only this schema gives to everybody
  await client.query(rolesSql('public', TEST_ROLES));
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

const query = async (sql: string, values?: unknown[]) => (await client.query(sql, values)).rows;

/** Does the work as the role, on this connection of a superuser. */
async function as<T>(role: string, work: () => Promise<T>): Promise<T> {
  await client.query(`set role ${role}`);
  try {
    return await work();
  } finally {
    await client.query('reset role');
  }
}

const rights = async (): Promise<Finding[]> => {
  const session = new Session(client as unknown as RawClient, { preparedStatements: false });
  const findings = await examine(session, 'public', new InspectionStore('public'), new OperationsStore('public'));
  return findings.filter(({ check }) => check === 'rights');
};

/** The GRANTs that the script gives to a role, one object each. */
const grantsTo = (role: string): string[] =>
  [...rolesSql('public', TEST_ROLES).matchAll(new RegExp(`^(GRANT .*) TO "${role}";$`, 'gm'))].flatMap(
    ([, grant = '']) => {
      const [, before = '', list = ''] = /^(GRANT EXECUTE ON FUNCTION )(.*)$/.exec(grant) ?? [];
      return list === '' ? [grant] : list.split(', ').map((name) => before + name);
    },
  );

describe('the roles of a schema (F22)', () => {
  it('have what start and doctor ask for: a worker everything, a viewer what looking needs', async () => {
    expect(await as(worker, () => checkServer(query, 'public'))).toEqual([]);
    expect(await as(worker, rights)).toMatchObject([{ level: 'ok' }]);
    expect(await as(viewer, () => checkServer(query, 'public', 'viewer'))).toEqual([]);
    expect(await as(viewer, rights)).toMatchObject([{ level: 'info', message: expect.stringContaining('may look') }]);
    expect((await as(viewer, () => checkServer(query, 'public')))[0]).toBeInstanceOf(MissingRightsError);
    expect(await as(TEST_ROLES.owner, () => missingGrants(query, 'public', 'viewer'))).not.toEqual([]);
  });

  it('miss none of their rights without a word: each is tried, and the GRANT that is named gives it back', async () => {
    for (const grant of grantsTo(worker)) {
      await client.query(`${grant.replace(/^GRANT/, 'REVOKE')} from ${worker}`);
      const found = await as(worker, rights);
      const [problem] = await as(worker, () => checkServer(query, 'public'));
      const { grants } = problem as MissingRightsError;
      expect({ grant, level: found[0]?.level }).toEqual({ grant, level: 'error' });
      expect({ grant, grants }).toEqual({ grant, grants: [`${grant} TO "${worker}";`] });
      expect(found[0]?.advice).toContain(grants[0]);
      await client.query(grants.join('\n'));
    }
    expect(await as(worker, () => checkServer(query, 'public'))).toEqual([]);
  });

  it('of a viewer read everything that an operator reads, and change nothing', async () => {
    const engine = await EngineSession.connect(database.url);
    const id = await engine.submit({ a: [] });
    await engine.end();
    const url = urlOf(database.url, viewer);
    const looks = [
      'stats',
      'workers',
      'runs list',
      `runs get ${id}`,
      `steps ${id}`,
      `explain ${id} a`,
      'dlq list',
      'dlq groups',
      'migrate status',
    ];
    looks.push('dlq retry', 'repair stranded-runs');
    const looked = [];
    for (let i = 0; i < looks.length; i += 3) {
      looked.push(...(await Promise.all(looks.slice(i, i + 3).map((line) => cyclone(line.split(' '), { url })))));
    }
    expect(
      looked.map(({ code, stderr }, i) => `${looks[i]}: ${code} ${/denied|rights/.exec(stderr)?.[0] ?? ''}`),
    ).toEqual(looks.map((line) => `${line}: 0 `));
    const doctor = await cyclone(['doctor', '--format', 'json'], { url });
    const findings = JSON.parse(doctor.stdout) as Finding[];
    expect(findings.filter(({ level }) => level === 'error')).toEqual([]);

    for (const line of [`cancel ${id}`, `pause ${id}`, 'purge --older-than 1ms --yes']) {
      const { code, stderr } = await cyclone(line.split(' '), { url });
      expect({ line, code, stderr }).toEqual({
        line,
        code: 3,
        stderr: expect.stringMatching(/lacks rights.*GRANT .*--roles/s),
      });
    }
    expect((await cyclone(['runs', 'get', id, '--format', 'ids'], { url })).stdout).toBe(`${id}\n`);
  }, 120_000);

  it('are printed for other names and another schema, and quoted', async () => {
    const { code, stdout } = await cyclone(['migrate', 'sql', '--schema', 'my Flow', '--roles', `o,the "worker",v`]);
    expect(code).toBe(0);
    expect(stdout).toContain('ON "my Flow".cyclone_runs TO "the ""worker""";');
    expect((await cyclone(['migrate', 'sql', '--roles', 'one'])).code).toBe(2);
    expect((await cyclone(['migrate', '--roles', '--database-url', 'postgres://h/db'])).code).toBe(2);
  });
});
