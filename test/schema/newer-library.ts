import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SCHEMA_VERSION } from '#cyclone/store/migration-files.js';
import { migrationTexts } from '../../scripts/generated-modules.mjs';
import { ROOT } from '../structure/source-files.js';

const PACKAGE = join(ROOT, 'libs/cyclone');

export interface Library {
  /** What a program imports. */
  readonly index: string;
  /** The command. */
  readonly command: string;
}

export interface NextMigration {
  /** The oldest library, by its schema version, that works with this one. */
  readonly compatibleFrom: number;
  readonly sql: string;
}

/** The library that this repository builds: the old one, once there is a newer. */
export const PRESENT: Library = libraryIn(PACKAGE);

/**
 * A release of the future: this library, with further migrations and with other functions.
 * @param migrations in their order; the first one is the version after the present one
 */
export function newerLibrary(migrations: readonly NextMigration[]): Library & { remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'cyclone-newer-'));
  cpSync(join(PACKAGE, 'dist'), join(folder, 'dist'), { recursive: true });
  cpSync(join(PACKAGE, 'package.json'), join(folder, 'package.json'));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction');

  const texts = join(folder, 'migrations');
  cpSync(join(ROOT, 'migrations'), texts, { recursive: true });
  let version = SCHEMA_VERSION;
  for (const { compatibleFrom, sql } of migrations) {
    version++;
    const note = `insert into cyclone_schema_version (version, name, compatible_from) values (${version}, 'next', ${compatibleFrom});`;
    writeFileSync(join(texts, `000${version}_next.sql`), `${sql};\n${note}\n`);
  }
  change(join(texts, 'functions/cyclone_flush.sql'), '$$;', '-- as the newer release has it\n$$;');
  writeFileSync(join(folder, 'dist/store/migration-texts.js'), migrationTexts(texts));
  change(
    join(folder, 'dist/store/migration-files.js'),
    `SCHEMA_VERSION = ${SCHEMA_VERSION}`,
    `SCHEMA_VERSION = ${version}`,
  );
  return { ...libraryIn(folder), remove: () => rmSync(folder, { recursive: true, force: true }) };
}

function libraryIn(folder: string): Library {
  return { index: join(folder, 'dist/index.js'), command: join(folder, 'dist/cli/main.js') };
}

function change(file: string, from: string, to: string): void {
  const text = readFileSync(file, 'utf8');
  if (!text.includes(from)) throw new Error(`${file} has no ${from}`);
  writeFileSync(
    file,
    text.replace(from, () => to),
  );
}
