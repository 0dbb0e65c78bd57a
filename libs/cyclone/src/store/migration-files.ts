import { createHash } from 'node:crypto';
import { FUNCTION_TEXTS, MIGRATION_TEXTS } from './migration-texts.js';

/** The schema version that this library was made for: the number of its last migration. */
export const SCHEMA_VERSION = 2;

/** A numbered file of `migrations/`, which runs once. */
export interface MigrationFile {
  readonly version: number;
  /** The file's name without its ending: `0001_tables`. */
  readonly name: string;
  readonly sql: string;
}

/** What the package ships for the database. */
export interface ShippedMigrations {
  /** In the order of their numbers. */
  readonly files: readonly MigrationFile[];
  /** The functions of the engine, one a file; they are replaced as a whole. */
  readonly functions: readonly { readonly name: string; readonly sql: string }[];
  /** Tells one set of functions from another. */
  readonly functionsChecksum: string;
}

/** The migrations of this library, at once: TypeORM wants to know their names before it does anything. */
export function shippedMigrations(): ShippedMigrations {
  return {
    files: MIGRATION_TEXTS.map(({ name, sql }) => ({ version: Number.parseInt(name, 10), name, sql })),
    functions: FUNCTION_TEXTS,
    functionsChecksum: checksum(FUNCTION_TEXTS.map(({ name, sql }) => `${name}\n${sql}`)),
  };
}

function checksum(texts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const text of texts) hash.update(`${text}\0`);
  return hash.digest('hex');
}
