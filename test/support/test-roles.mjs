// The roles of the tests. They belong to the whole server, so they are made once, before any test asks for them.
import pg from 'pg';

export const TEST_ROLES = { owner: 'cyclone_test_owner', worker: 'cyclone_test_worker', viewer: 'cyclone_test_viewer' };

/** @param {string} url of a superuser */
export async function createTestRoles(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const role of Object.values(TEST_ROLES)) {
      const { rows } = await client.query('select from pg_roles where rolname = $1', [role]);
      if (rows.length === 0) await client.query(`create role ${role} login password '${role}'`);
    }
  } finally {
    await client.end();
  }
}
