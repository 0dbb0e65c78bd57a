import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { DataSource } from 'typeorm';
import type { DataSourceOptions } from 'typeorm';

export { startPostgres } from './postgres-server.mjs';
export type { PostgresServer } from './postgres-server.mjs';

/** A database that belongs to one test or one test file. */
export interface TestDatabase {
  /** Connection string of the superuser. */
  readonly url: string;
  readonly name: string;
  /** Removes the database; connections that are still open are ended. */
  drop(): Promise<void>;
}

export interface CreateDatabaseOptions {
  /** The server. Default: the one that the whole run of the tests shares. */
  server?: string;
  /** Name of a database to copy; nobody may be connected to it. Default: an empty database. */
  template?: string;
  /** The encoding of an empty database. Default: that of the server, UTF8. */
  encoding?: string;
}

/** Creates a database of its own for the caller. Takes some 50 ms. */
export async function createDatabase(options: CreateDatabaseOptions = {}): Promise<TestDatabase> {
  const server = options.server ?? sharedServerUrl();
  const name = `cyclone_test_${randomBytes(6).toString('hex')}`;
  const template = options.template ? ` TEMPLATE ${pg.escapeIdentifier(options.template)}` : '';
  const encoding = options.encoding
    ? ` TEMPLATE template0 ENCODING ${pg.escapeLiteral(options.encoding)} LC_COLLATE 'C' LC_CTYPE 'C'`
    : '';
  await execute(server, `CREATE DATABASE ${pg.escapeIdentifier(name)}${template}${encoding}`);

  const url = new URL(server);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    name,
    drop: () => execute(server, `DROP DATABASE ${pg.escapeIdentifier(name)} WITH (FORCE)`),
  };
}

/** Opens a TypeORM DataSource on a test database; the caller destroys it. */
export async function openDataSource(
  url: string,
  options: Partial<Omit<Extract<DataSourceOptions, { type: 'postgres' }>, 'type' | 'url'>> = {},
): Promise<DataSource> {
  return new DataSource({ ...options, type: 'postgres', url }).initialize();
}

function sharedServerUrl(): string {
  const url = process.env.CYCLONE_TEST_URL;
  if (!url) throw new Error('No test server: CYCLONE_TEST_URL is not set, and Jest did not run its global setup.');
  return url;
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
