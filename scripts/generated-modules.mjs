// What the build makes modules of, so that the library reads no file at run time: an application that is bundled whole has none beside it.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The texts of a folder of migrations as a module, which is TypeScript and JavaScript alike.
 * @param {string} folder with the numbered files, and the functions in `functions/`
 */
export function migrationTexts(folder) {
  return `${HEADER}
export const MIGRATION_TEXTS = [${texts(folder)}];

export const FUNCTION_TEXTS = [${texts(join(folder, 'functions'))}];
`;
}

/**
 * The version in a package.json as a module.
 * @param {string} manifest
 */
export function packageVersion(manifest) {
  const { version } = JSON.parse(readFileSync(manifest, 'utf8'));
  return `${HEADER}
/** The version of this package, for operators to see. */
export const PACKAGE_VERSION: string = ${JSON.stringify(version)};
`;
}

/**
 * Writes a file unless it says so already: the compiler takes a new time for a change.
 * @param {string} file
 * @param {string} text
 */
export function writeChanged(file, text) {
  if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text);
}

const HEADER = '// Written by scripts/build.mjs: not to be changed here, and not committed.\n';

/** @param {string} folder */
function texts(folder) {
  const files = readdirSync(folder).filter((file) => file.endsWith('.sql'));
  const lines = files.toSorted().map((file) => {
    const name = JSON.stringify(file.slice(0, -'.sql'.length));
    const sql = JSON.stringify(readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n'));
    return `  { name: ${name}, sql: ${sql} },\n`;
  });
  return `\n${lines.join('')}`;
}
