import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The schema version that this library was made for: the number of its last migration. */
export const SCHEMA_VERSION = 3;

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

/** The build puts the repository's `migrations/` beside the folder of this module. */
const FOLDER = join(dirname(fileURLToPath(import.meta.url)), '../migrations');

/** Reads the migrations that the package ships; at once, because TypeORM wants to know their names before it does anything. */
export function readMigrations(): ShippedMigrations {
  const functions = readSql(join(FOLDER, 'functions'));
  return {
    files: readSql(FOLDER).map(({ name, sql }) => ({ version: Number.parseInt(name, 10), name, sql })),
    functions,
    functionsChecksum: checksum(functions.map(({ name, sql }) => `${name}\n${sql}`)),
  };
}

function readSql(folder: string): { name: string; sql: string }[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.sql'));
  return files.toSorted().map((file) => ({
    name: file.slice(0, -'.sql'.length),
    sql: readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n'),
  }));
}

function checksum(texts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const text of texts) hash.update(`${text}\0`);
  return hash.digest('hex');
}
