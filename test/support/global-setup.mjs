// One PostgreSQL server for the whole run of the tests. CYCLONE_TEST_URL names a server of your own instead: a superuser's
// connection string. Test files get databases from it with createDatabase() of postgres.ts.
import { startPostgres } from './postgres-server.mjs';
import { createTestRoles } from './test-roles.mjs';

/** @type {import('./postgres-server.mjs').PostgresServer | undefined} */
let server;

export default async function setup() {
  if (!process.env.CYCLONE_TEST_URL) {
    server = await startPostgres();
    process.env.CYCLONE_TEST_URL = server.url;
  }
  await createTestRoles(process.env.CYCLONE_TEST_URL);
}

export async function teardown() {
  if (!server) return;
  delete process.env.CYCLONE_TEST_URL;
  await server.destroy();
  server = undefined;
}
