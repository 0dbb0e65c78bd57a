import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { startEmbeddedServer } from '../postgres/embedded-server.js';

/** A place for the tables of one demo. */
export interface DemoDatabase {
  readonly databaseUrl: string;
  readonly schema: string;
  /** Leaves nothing behind. */
  remove(): Promise<void>;
}

/** A schema of its own in the given database, or else a whole server of its own. */
export async function openDemoDatabase(databaseUrl: string | undefined): Promise<DemoDatabase> {
  if (!databaseUrl) {
    const server = await startEmbeddedServer('temporary');
    return { databaseUrl: server.url, schema: 'public', remove: () => server.stop() };
  }
  const schema = `cyclone_demo_${randomBytes(4).toString('hex')}`;
  await execute(databaseUrl, `CREATE SCHEMA ${schema}`);
  return { databaseUrl, schema, remove: () => execute(databaseUrl, `DROP SCHEMA ${schema} CASCADE`) };
}

async function execute(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
