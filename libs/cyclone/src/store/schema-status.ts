import { SchemaVersionError } from '../model/errors/index.js';
import { quoteIdentifier } from './identifier.js';
import { SCHEMA_VERSION } from './migration-files.js';

/** Runs one statement and gives its rows as objects; `DataSource.query` is one. */
export type Query = (sql: string, values?: unknown[]) => Promise<Record<string, unknown>[]>;

/** What a database knows about its Cyclone schema. */
export interface SchemaStatus {
  readonly schema: string;
  /** The newest version in the database; null when there is no Cyclone in this schema. */
  readonly version: number | null;
  /** The version that this library was made for. */
  readonly required: number;
  /** The oldest library, by the schema version it was made for, that can work with this schema; null without one. */
  readonly compatibleFrom: number | null;
  /** Versions of this library that the database has not got. */
  readonly missing: readonly number[];
  /** Checksum of the functions that were last installed by `migrate`; null when that never happened. */
  readonly functionsChecksum: string | null;
  /** Whether the engine's functions are there at all. */
  readonly functionsInstalled: boolean;
}

/** Reads what the schema holds. Needs no more than the right to use the schema. */
export async function readSchemaStatus(query: Query, schema: string): Promise<SchemaStatus> {
  const table = `${quoteIdentifier(schema)}.cyclone_schema_version`;
  const [found] = await query(`select (to_regclass($1) is not null)::text as found`, [table]);
  const rows = found?.found === 'true' ? await query(versionsSql(table), [schema]) : [];
  const versions = new Set(rows.map((row) => Number(row.version)));
  const newest = rows[0];
  return {
    schema,
    version: newest ? Number(newest.version) : null,
    required: SCHEMA_VERSION,
    compatibleFrom: newest ? Number(newest.compatible_from) : null,
    missing: Array.from({ length: SCHEMA_VERSION }, (_, i) => i + 1).filter((version) => !versions.has(version)),
    functionsChecksum: (newest?.functions ?? null) as string | null,
    functionsInstalled: newest?.installed === 'true',
  };
}

function versionsSql(table: string): string {
  return `
    select v.version::text, v.compatible_from::text, v.functions,
           exists (select from pg_proc p join pg_namespace n on n.oid = p.pronamespace
                    where n.nspname = $1 and p.proname = 'cyclone_flush')::text as installed
      from ${table} v order by v.version desc`;
}

/** Why this library cannot work with the schema (R22), or undefined when it can. */
export function schemaProblem(status: SchemaStatus): SchemaVersionError | undefined {
  const { schema, version, required, compatibleFrom, missing, functionsInstalled } = status;
  const remedy = `Run \`npx nestjs-cyclone migrate${schema === 'public' ? '' : ` --schema ${shellQuoted(schema)}`}\`, or set migrationsRun: true.`;
  if (version === null)
    return new SchemaVersionError(null, required, `The schema is ${quoteIdentifier(schema)}. ${remedy}`);
  if (compatibleFrom !== null && compatibleFrom > required) {
    return new SchemaVersionError(
      version,
      required,
      `It works only with libraries made for version ${compatibleFrom} or later: upgrade nestjs-cyclone.`,
    );
  }
  if (missing.length > 0) {
    const gap = version < required ? '' : `Migration ${missing.join(', ')} was never applied. `;
    return new SchemaVersionError(version, required, gap + remedy);
  }
  if (!functionsInstalled) {
    return new SchemaVersionError(version, required, `The functions of the engine are missing. ${remedy}`);
  }
  return undefined;
}

function shellQuoted(text: string): string {
  return /^[\w-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
