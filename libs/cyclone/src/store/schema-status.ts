import { SchemaVersionError } from '../model/errors/index.js';
import { listed } from '../model/listed.js';
import { quoteIdentifier } from './identifier.js';
import { SCHEMA_VERSION, shippedMigrations } from './migration-files.js';

/** Runs one statement and gives its rows as objects; `DataSource.query` is one. */
export type Query = (sql: string, values?: unknown[]) => Promise<Record<string, unknown>[]>;

/** What a database knows about its Cyclone schema. */
export interface SchemaStatus {
  readonly schema: string;
  /** The newest version in the database; null when there is no Cyclone in this schema, or none is recorded. */
  readonly version: number | null;
  /** The version that this library was made for. */
  readonly required: number;
  /** The oldest library, by the schema version it was made for, that can work with this schema; null without one. */
  readonly compatibleFrom: number | null;
  /** Versions of this library that the database has not got. */
  readonly missing: readonly number[];
  /** Those of them whose tables or views are there all the same: somebody has emptied or dropped the table of versions. */
  readonly unrecorded: readonly number[];
  /** Other schemas that hold a Cyclone; looked up only when this one has none. */
  readonly elsewhere: readonly string[];
  /** Checksum of the functions that were last installed by `migrate`; null when that never happened. */
  readonly functionsChecksum: string | null;
  /** Whether the engine's functions are there: all of them when they were installed by this library. */
  readonly functionsInstalled: boolean;
}

const FOUND_SQL = `
  select string_agg(c.relname, ' ') as relations
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
   where n.nspname = $1 and c.relname ~ '^cyclone_' and c.relkind in ('r', 'p', 'v', 'm', 'f')`;

/** Reads what the schema holds. Needs no more than the right to use the schema. */
export async function readSchemaStatus(query: Query, schema: string): Promise<SchemaStatus> {
  const table = `${quoteIdentifier(schema)}.cyclone_schema_version`;
  // Relations are read no later than the versions: what another process commits between the two is never tables without a version.
  const [found] = await query(FOUND_SQL, [schema]);
  const relations = String(found?.relations ?? '').split(' ');
  const rows = relations.includes('cyclone_schema_version') ? await query(versionsSql(table), [schema]) : [];
  const versions = new Set(rows.map((row) => Number(row.version)));
  const newest = rows[0];
  const missing = Array.from({ length: SCHEMA_VERSION }, (_, i) => i + 1).filter((version) => !versions.has(version));
  const unrecorded = unrecordedOf(missing, relations);
  const functionsChecksum = (newest?.functions ?? null) as string | null;
  return {
    schema,
    version: newest ? Number(newest.version) : null,
    required: SCHEMA_VERSION,
    compatibleFrom: newest ? Number(newest.compatible_from) : null,
    missing,
    unrecorded,
    elsewhere: newest || unrecorded.length > 0 ? [] : await readElsewhere(query, schema),
    functionsChecksum,
    functionsInstalled: areInstalled(String(newest?.installed ?? '').split(' '), functionsChecksum),
  };
}

function versionsSql(table: string): string {
  return `
    select v.version::text, v.compatible_from::text, v.functions,
           (select string_agg(p.proname, ' ') from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = $1) as installed
      from ${table} v order by v.version desc`;
}

/** Those of another version may be others; which ones these need, nobody here knows. */
function areInstalled(installed: readonly string[], checksum: string | null): boolean {
  const { functions, functionsChecksum } = shippedMigrations();
  const needed = checksum === functionsChecksum ? functions.map(({ name }) => name) : ['cyclone_flush'];
  const there = new Set(installed);
  return needed.every((name) => there.has(name));
}

/** Those versions of which a table or a view is there. */
function unrecordedOf(missing: readonly number[], relations: readonly string[]): number[] {
  const makes = (sql: string): string[] =>
    [...sql.matchAll(/^create (?:table|view) (\w+)/gm)].map(([, name = '']) => name);
  return shippedMigrations()
    .files.filter(
      ({ version, sql }) => missing.includes(version) && makes(sql).some((name) => relations.includes(name)),
    )
    .map(({ version }) => version);
}

async function readElsewhere(query: Query, schema: string): Promise<string[]> {
  const rows = await query(
    `select n.nspname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relname = 'cyclone_schema_version' and c.relkind = 'r' and n.nspname <> $1 and n.nspname !~ '^pg_' order by n.nspname`,
    [schema],
  );
  return rows.map(({ name }) => String(name));
}

/** Why this library cannot work with the schema (R22), or undefined when it can. */
export function schemaProblem(status: SchemaStatus): SchemaVersionError | undefined {
  const { schema, version, required, compatibleFrom, missing, unrecorded, elsewhere, functionsInstalled } = status;
  const remedy = `Run \`${migrateCommand(schema)}\`, or set migrationsRun: true.`;
  const place = `the schema ${quoteIdentifier(schema)}`;
  if (compatibleFrom !== null && compatibleFrom > required) {
    return new SchemaVersionError(
      version,
      required,
      `It works only with libraries made for version ${compatibleFrom} or later: upgrade nestjs-cyclone.`,
    );
  }
  if (unrecorded.length > 0) {
    return new SchemaVersionError(
      version,
      required,
      `Run \`${migrateCommand(schema)} --adopt\`: it compares them with what this library makes, and records the version again. ` +
        `Tests that empty all tables must leave out cyclone_schema_version and cyclone_marks.`,
      `Tables of Cyclone are in ${place}, but cyclone_schema_version ${version === null ? 'is empty or gone' : `ends with version ${version}`}, ` +
        `so that nobody knows their version (${required} is the newest that this library knows).`,
    );
  }
  if (version === null && elsewhere.length > 0) {
    const [other = ''] = elsewhere;
    return new SchemaVersionError(
      null,
      required,
      `Set schema: ${JSON.stringify(other)} in CycloneModule.forRoot, and --schema ${shellQuoted(other)} or CYCLONE_SCHEMA for the command. ` +
        `For another installation run \`${migrateCommand(schema, true)}\`, or set migrationsRun: true.`,
      `The Cyclone tables are missing in ${place}; there are some in ${listed(elsewhere.map(quoteIdentifier))}.`,
    );
  }
  if (version === null)
    return new SchemaVersionError(null, required, `The schema is ${quoteIdentifier(schema)}. ${remedy}`);
  if (missing.length > 0) {
    const gap = version < required ? '' : `Migration ${missing.join(', ')} was never applied. `;
    return new SchemaVersionError(version, required, gap + remedy);
  }
  if (!functionsInstalled) {
    return new SchemaVersionError(version, required, `Functions of the engine are missing. ${remedy}`);
  }
  return undefined;
}

function migrateCommand(schema: string, explicit = false): string {
  return `npx nestjs-cyclone migrate${schema === 'public' && !explicit ? '' : ` --schema ${shellQuoted(schema)}`}`;
}

function shellQuoted(text: string): string {
  return /^[\w-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
