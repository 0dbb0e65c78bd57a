// Makes modules of the migrations and of the package's version, then compiles the library, the command and the sample application.
// Arguments go to tsc: `npm run build -- --watch`.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { migrationTexts, packageVersion, writeChanged } from './generated-modules.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const library = join(root, 'libs/cyclone');
const dist = join(library, 'dist');

writeChanged(join(library, 'src/store/migration-texts.ts'), migrationTexts(join(root, 'migrations')));
writeChanged(join(library, 'src/model/package-version.ts'), packageVersion(join(library, 'package.json')));

// What lost its source since the last build must not stay importable, and must not be published.
for (const file of filesOf(dist)) if (!hasSource(file)) rmSync(join(dist, file));

const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const { status } = spawnSync(process.execPath, [tsc, '-b', root, ...process.argv.slice(2)], { stdio: 'inherit' });

process.exitCode = status ?? 1;

/** @param {string} folder */
function filesOf(folder) {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

/** @param {string} file path in the library's dist folder */
function hasSource(file) {
  if (file.endsWith('.tsbuildinfo')) return true;
  const source = file.replace(/(\.d\.ts|\.js)(\.map)?$/, '.ts');
  return existsSync(file.startsWith(`cli${sep}`) ? join(library, source) : join(library, 'src', source));
}
