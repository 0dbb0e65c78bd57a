import pg from 'pg';
import { UsageError, type Globals } from './command-line.js';

const CONNECT_TIMEOUT_MS = 10_000;

/** The database did not take the connection, or lost it. The message names it without the password. */
export class UnreachableError extends Error {}

/** Runs `work` on a pool of the database that the command line or the environment names; it is known to take connections. */
export async function withPool<T>(
  { databaseUrl = process.env.DATABASE_URL }: Globals,
  work: (pool: pg.Pool) => Promise<T>,
): Promise<T> {
  if (!databaseUrl)
    throw new UsageError('No database: pass --database-url, or set the environment variable DATABASE_URL.');
  const shown = withoutPassword(databaseUrl);
  const pool = openPool(databaseUrl);
  let lost: Error | undefined;
  const note = (error: Error): void => {
    lost = error; // a statement that waits for an answer is rejected too, with less to say
  };
  pool.on('error', note);
  pool.on('connect', (client) => client.on('error', note));
  try {
    (await pool.connect()).release();
  } catch (error) {
    await pool.end();
    throw new UnreachableError(`Cannot connect to ${shown}: ${reasonOf(error)}`);
  }
  try {
    return await work(pool);
  } catch (error) {
    throw lost ? new UnreachableError(`The connection to ${shown} was lost: ${reasonOf(lost)}`) : error;
  } finally {
    await pool.end();
  }
}

function openPool(databaseUrl: string): pg.Pool {
  try {
    return new pg.Pool({
      connectionString: databaseUrl,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      application_name: 'cyclone',
      max: 2, // one for the work, one for the notifications that it causes
    });
  } catch (error) {
    // A certificate that the URL names and that cannot be read, for example.
    throw new UsageError(`The database URL cannot be used: ${reasonOf(error)}`);
  }
}

const ENCODED =
  'Characters with a meaning in URLs have to be percent-encoded in user and password: ' +
  '# is %23, / is %2F, ? is %3F, @ is %40, : is %3A, % is %25.';

/**
 * Where the URL points to: no password, and no parameters either, which may hold one. Nothing of a URL is shown of which a password may
 * be read as something else.
 */
function withoutPassword(url: string): string {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new UsageError(`The database URL must look like postgres://user:password@host:port/database. ${ENCODED}`);
  }
  if (!/^postgres(ql)?:$/.test(parsed.protocol)) {
    throw new UsageError('The database URL must begin with postgres:// or postgresql://.');
  }
  // A password with one of these characters ends the name of the host, so that the @ stands behind it.
  if (url.includes('#') || (parsed.password === '' && (parsed.pathname + parsed.search).includes('@'))) {
    throw new UsageError(`The database URL cannot be read. ${ENCODED}`);
  }
  return `${parsed.protocol}//${parsed.username}${parsed.username && '@'}${parsed.host}${parsed.pathname}`;
}

/** A refused connection to a name with several addresses is an AggregateError, whose own message is empty. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}
