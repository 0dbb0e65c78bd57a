// One PostgreSQL server for the whole run of the tests. CYCLONE_TEST_URL names a server of your own instead: a superuser's
// connection string. Test files get databases from it with createDatabase() of postgres.ts.
import { startPostgres } from './postgres-server.mjs';

/** @type {import('./postgres-server.mjs').PostgresServer | undefined} */
let server;

export default async function setup() {
  if (process.env.CYCLONE_TEST_URL) return;
  server = await startPostgres();
  process.env.CYCLONE_TEST_URL = server.url;
}

export async function teardown() {
  if (!server) return;
  delete process.env.CYCLONE_TEST_URL;
  await server.destroy();
  server = undefined;
}
