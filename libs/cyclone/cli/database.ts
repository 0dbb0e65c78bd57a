import pg from 'pg';
import { UsageError, type CommandLine } from './command-line.js';

const CONNECT_TIMEOUT_MS = 10_000;

/** The database did not take the connection. The message names it without the password. */
export class UnreachableError extends Error {}

/** Runs `work` on a connection to the database that the command line or the environment names. */
export async function withDatabase<T>({ values }: CommandLine, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const url = values['database-url'] ?? process.env.DATABASE_URL;
  if (!url) throw new UsageError('No database: pass --database-url, or set the environment variable DATABASE_URL.');
  const shown = withoutPassword(url);
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: 'cyclone',
  });
  let lost: Error | undefined;
  client.on('error', (error) => {
    lost = error; // the statement that waits for an answer is rejected too, with less to say
  });
  try {
    await client.connect();
  } catch (error) {
    throw new UnreachableError(`Cannot connect to ${shown}: ${reasonOf(error)}`);
  }
  try {
    return await work(client);
  } catch (error) {
    throw lost ? new UnreachableError(`The connection to ${shown} was lost: ${reasonOf(lost)}`) : error;
  } finally {
    await client.end();
  }
}

function withoutPassword(url: string): string {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new UsageError('The database URL must look like postgres://user:password@host:port/database.');
  }
  if (!/^postgres(ql)?:$/.test(parsed.protocol)) {
    throw new UsageError('The database URL must begin with postgres:// or postgresql://.');
  }
  return `${parsed.protocol}//${parsed.username}${parsed.username && '@'}${parsed.host}${parsed.pathname}`;
}

/** A refused connection to a name with several addresses is an AggregateError, whose own message is empty. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}
