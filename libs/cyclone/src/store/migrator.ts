import type { DataSource } from 'typeorm';
import { CycloneError, InvalidOptionError, SchemaVersionError } from '../model/errors/index.js';
import { adoptSchema } from './adopt-schema.js';
import { checkSchemaName, quoteIdentifier } from './identifier.js';
import { shippedMigrations, SCHEMA_VERSION, type ShippedMigrations } from './migration-files.js';
import { functionStatements, lockName, searchPath, SETTINGS_SQL } from './migration-script.js';
import { destroyClient, rawClientOf, type RawClient } from './raw-client.js';
import { readSchemaStatus, schemaProblem, type Query, type SchemaStatus } from './schema-status.js';
import { dataSourceProblem, serverVersionProblem } from './server-check.js';

/** A connected client of `pg`; not a pool, because a migration is one transaction. */
export interface MigrationClient {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

export interface MigrateOptions {
  /** The Postgres schema that holds the `cyclone_*` objects; made when it does not exist. @default 'public' */
  readonly schema?: string;
  /**
   * Whether tables of which `cyclone_schema_version` says nothing are taken over: they are compared with what this library makes, and
   * their version is recorded again. Without it they are refused. @default false
   */
  readonly adopt?: boolean;
  /** Told of each thing that is done, in a sentence. */
  readonly log?: (message: string) => void;
}

export interface MigrationResult {
  /** The version of the schema now. */
  readonly version: number;
  /** The names of the migrations that this call applied. */
  readonly applied: readonly string[];
  /** Whether this call installed the functions of the engine. */
  readonly functionsInstalled: boolean;
}

export interface MigrationStatus extends SchemaStatus {
  /** The names of the migrations that `migrate` would apply. */
  readonly pending: readonly string[];
  /** Whether the functions in the database are those of this library. */
  readonly functionsCurrent: boolean;
  /** Why this library cannot work with the schema as it is; undefined when it can. */
  readonly problem: SchemaVersionError | undefined;
}

/**
 * Brings the schema to the version of this library, in one transaction: applies what is missing and installs the functions of the
 * engine when they differ. Does nothing to a schema that is newer and works with this library. Any number of processes may call
 * it at once, and workers may go on meanwhile.
 *
 * Functions are replaced only by a library of the same or a newer schema version, so a release that changes one of them has to
 * bring a migration with it.
 *
 * @param target an initialized DataSource, or a connected client of `pg` that is not in a transaction
 * @throws SchemaVersionError when the schema is newer and does not work with this library, and when its tables are there without a
 *   record of their version, unless `adopt` says so and they are what this library makes
 * @throws InvalidOptionError for a schema name that Postgres does not take, a server older than 14, a DataSource of another database
 * @throws CycloneError naming the file that failed; nothing was changed then
 */
export async function migrate(
  target: DataSource | MigrationClient,
  { schema = 'public', adopt = false, log = () => undefined }: MigrateOptions = {},
): Promise<MigrationResult> {
  checkSchemaName(schema);
  const shipped = shippedMigrations();
  return withQuery(target, async (query) => {
    // READ COMMITTED, whatever the default is: what another process has done is looked up after the lock is ours.
    await query('begin isolation level read committed read write');
    try {
      const result = await migrateLocked(query, shipped, { schema, adopt, log });
      await query('commit');
      return result;
    } catch (error) {
      await query('rollback').catch(() => undefined); // of a lost connection, which rolls back by itself
      throw error;
    }
  });
}

/** Compares the schema with this library. Changes nothing. */
export async function migrationStatus(
  target: DataSource | MigrationClient,
  { schema = 'public' }: Pick<MigrateOptions, 'schema'> = {},
): Promise<MigrationStatus> {
  checkSchemaName(schema);
  const shipped = shippedMigrations();
  const status = await withQuery(target, (query) => readSchemaStatus(query, schema));
  return {
    ...status,
    pending: shipped.files.filter((file) => status.missing.includes(file.version)).map((file) => file.name),
    functionsCurrent: status.functionsChecksum === shipped.functionsChecksum,
    problem: schemaProblem(status),
  };
}

/** What `migrate` does, in a transaction that is open already, at READ COMMITTED. */
export async function migrateLocked(
  query: Query,
  shipped: ShippedMigrations,
  { schema, adopt, log }: Required<MigrateOptions>,
): Promise<MigrationResult> {
  const [server] = await query(`select current_setting('server_version_num') as version`);
  const tooOld = serverVersionProblem(Number(server?.version));
  if (tooOld) throw tooOld;

  await query(SETTINGS_SQL);
  await query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [lockName(schema)]);
  let status = await readSchemaStatus(query, schema);
  if (status.unrecorded.length > 0) {
    const problem = schemaProblem(status);
    if (problem && !adopt) throw problem;
    const version = await adoptSchema(query, shipped.files, schema);
    log(`Recorded version ${version} again: the schema is what this library makes.`);
    status = await readSchemaStatus(query, schema);
  }
  for (const other of status.elsewhere)
    log(`The schema ${quoteIdentifier(other)} has a Cyclone too; this is another one.`);
  const { version: found, functionsChecksum } = status;
  if (found !== null && found > SCHEMA_VERSION) {
    const problem = schemaProblem(status);
    if (problem) throw problem;
    log(`The schema has version ${found}, newer than this library's ${SCHEMA_VERSION}, and works with it.`);
    return { version: found, applied: [], functionsInstalled: false };
  }

  const pending = shipped.files.filter((file) => status.missing.includes(file.version));
  const functionsInstalled =
    pending.length > 0 || functionsChecksum !== shipped.functionsChecksum || !status.functionsInstalled;
  if (functionsInstalled) await enterSchema(query, schema, log);
  for (const { name, sql } of pending) {
    await run(query, name, sql);
    log(`Applied ${name}.`);
  }
  if (functionsInstalled) {
    await run(query, 'functions', functionStatements(shipped).join('\n'));
    log(`Installed ${shipped.functions.length} functions.`);
  }
  return { version: SCHEMA_VERSION, applied: pending.map((file) => file.name), functionsInstalled };
}

/** Makes the schema, unless it is there: to ask needs no right, to say IF NOT EXISTS needs the right to create one. */
async function enterSchema(query: Query, schema: string, log: (message: string) => void): Promise<void> {
  const exists = await query('select from pg_namespace where nspname = $1', [schema]);
  if (exists.length === 0) {
    await query(`create schema ${quoteIdentifier(schema)}`);
    log(`Created the schema ${quoteIdentifier(schema)}.`);
  }
  await query(searchPath(schema));
}

async function run(query: Query, name: string, sql: string): Promise<void> {
  try {
    await query(sql);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CycloneError(`The migration ${name} failed, nothing was changed: ${reason}`, { cause: error });
  }
}

/** Lends one connection to the work; a DataSource's own is given back, or cut when its state is in doubt. */
async function withQuery<T>(target: DataSource | MigrationClient, work: (query: Query) => Promise<T>): Promise<T> {
  if (!('createQueryRunner' in target)) {
    if ('totalCount' in target)
      throw new InvalidOptionError('client', 'must be one client, not a pool: take one out of it.');
    return work(queryOf(target));
  }
  const foreign = dataSourceProblem(target.options.type);
  if (foreign) throw foreign;
  const runner = target.createQueryRunner('master');
  let client: RawClient | undefined;
  try {
    client = await rawClientOf(runner);
    const result = await work(queryOf(client as unknown as MigrationClient));
    client = undefined;
    return result;
  } finally {
    if (client) destroyClient(client);
    await runner.release();
  }
}

function queryOf(client: MigrationClient): Query {
  return async (sql, values) => (await client.query(sql, values)).rows;
}
