import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
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

/** Reads the migrations that the package ships. */
export async function readMigrations(): Promise<ShippedMigrations> {
  const [files, functions] = await Promise.all([readSql(FOLDER), readSql(join(FOLDER, 'functions'))]);
  return {
    files: files.map(({ name, sql }) => ({ version: Number.parseInt(name, 10), name, sql })),
    functions,
    functionsChecksum: checksum(functions.map(({ name, sql }) => `${name}\n${sql}`)),
  };
}

async function readSql(folder: string): Promise<{ name: string; sql: string }[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).toSorted();
  return Promise.all(
    names.map(async (name) => ({
      name: name.slice(0, -'.sql'.length),
      sql: (await readFile(join(folder, name), 'utf8')).replaceAll('\r\n', '\n'),
    })),
  );
}

function checksum(texts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const text of texts) hash.update(`${text}\0`);
  return hash.digest('hex');
}
