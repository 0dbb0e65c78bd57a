import pg from 'pg';
import { rolesSql } from '#cyclone/store/roles.js';
import { createTestRoles, TEST_ROLES } from './test-roles.mjs';

/**
 * Lets the worker role of the tests use the engine of a database, with the rights that the documentation gives it and no others, and
 * make tables of its own.
 * @returns the connection string of that role
 */
export async function asWorker(url: string, ownTables: readonly string[] = []): Promise<string> {
  await createTestRoles(url); // on a server of the test's own
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(rolesSql('public', TEST_ROLES));
    const worker = pg.escapeIdentifier(TEST_ROLES.worker);
    await client.query(`grant create on schema public to ${worker}`);
    for (const table of ownTables) await client.query(`alter table ${table} owner to ${worker}`);
  } finally {
    await client.end();
  }
  return urlOf(url, TEST_ROLES.worker);
}

/** The same database as another role of the tests. */
export function urlOf(url: string, role: string): string {
  const changed = new URL(url);
  changed.username = role;
  changed.password = role;
  return changed.href;
}
