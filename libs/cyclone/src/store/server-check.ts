import {
  InvalidOptionError,
  MissingRightsError,
  UnsafeIsolationError,
  type CycloneError,
} from '../model/errors/index.js';
import { missingGrants, type RoleKind } from './roles.js';
import { readSchemaStatus, schemaProblem, type Query } from './schema-status.js';

/** The oldest server that the engine's SQL runs on, as `server_version_num` counts. */
const OLDEST_SERVER = 140_000;

/**
 * Looks whether Cyclone can work with this database (R22): a server not older than 14, READ COMMITTED as the default isolation of
 * server, database and role, an encoding that holds every text, a schema that fits the library, and the rights on it.
 *
 * @param query on a connection as the engine will have it: same role, same settings
 * @param kind what the role has to be able to do
 * @returns every problem at once, each an error that says what to do; empty when all is well
 */
export async function checkServer(query: Query, schema: string, kind: RoleKind = 'worker'): Promise<CycloneError[]> {
  const [row] = await query(
    `select current_setting('server_version_num') as version, current_setting('default_transaction_isolation') as isolation,
            current_setting('server_encoding') as encoding, current_user::text as role`,
  );
  const tooOld = serverVersionProblem(Number(row?.version));
  const problems: CycloneError[] = tooOld ? [tooOld] : [];
  const isolation = String(row?.isolation);
  if (isolation !== 'read committed') problems.push(new UnsafeIsolationError(isolation));
  const unfit = encodingProblem(String(row?.encoding));
  if (unfit) problems.push(unfit);
  const grants = await missingGrants(query, schema, kind);
  // Without them its version cannot be read either.
  const isClosed = grants.some((grant) => grant.includes(' ON SCHEMA ') || grant.includes('cyclone_schema_version'));
  const misfit = isClosed ? undefined : schemaProblem(await readSchemaStatus(query, schema));
  if (misfit) problems.push(misfit);
  else if (grants.length > 0) problems.push(new MissingRightsError(String(row?.role), schema, grants));
  return problems;
}

/** Refuses a DataSource of another database; those that speak only the protocol of Postgres count as such. */
export function dataSourceProblem(type: string): InvalidOptionError | undefined {
  if (type === 'postgres') return undefined;
  return new InvalidOptionError(
    'dataSource',
    `must be a TypeORM DataSource of type "postgres"; this one is of type "${type}". ` +
      `Name the right one with the option dataSource.`,
  );
}

/** SQL_ASCII stores the bytes of UTF-8 as they come; every other encoding lacks characters. */
const ENCODINGS: ReadonlySet<string> = new Set(['UTF8', 'SQL_ASCII']);

/** Refuses a database in which not every output and error text can be stored: such a step could never be settled as it is. */
export function encodingProblem(encoding: string): InvalidOptionError | undefined {
  if (ENCODINGS.has(encoding)) return undefined;
  return new InvalidOptionError(
    'dataSource',
    `must lead to a database with the encoding UTF8; this one has ${encoding}, which cannot store every character of an output or an error. ` +
      `Make a database with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and move the tables there with pg_dump.`,
  );
}

/** Refuses pg-native, which TypeORM takes by itself where it is installed. */
export function nativeDriverProblem(): InvalidOptionError {
  return new InvalidOptionError(
    'dataSource',
    `works with pg-native, which TypeORM takes wherever it is installed, and Cyclone needs the JavaScript driver. Uninstall pg-native, or pass ` +
      `the driver: TypeOrmModule.forRoot({ driver: Object.create(pg, { native: { value: undefined } }), … }) with pg from import pg from 'pg'.`,
  );
}

/** Refuses a server whose `server_version_num` is below 14. */
export function serverVersionProblem(version: number): InvalidOptionError | undefined {
  if (version >= OLDEST_SERVER) return undefined;
  return new InvalidOptionError(
    'dataSource',
    `must lead to PostgreSQL 14 or newer; this server is ${Math.floor(version / 10_000)}.${version % 10_000}. Upgrade it.`,
  );
}
