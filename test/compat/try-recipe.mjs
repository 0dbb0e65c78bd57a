import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';

/** @typedef {import('./recipes.mjs').Recipe} Recipe */
/** @typedef {import('./recipes.mjs').Command} Command */

const run = promisify(execFile);
const SOURCES = fileURLToPath(new URL('../package', import.meta.url));
const PATIENCE_MS = 300_000;
const SHELL = process.platform === 'win32';
const NPM_FLAGS = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error', '--ignore-scripts'];
const MANAGERS = { yarn: '@yarnpkg/cli-dist@4.18.1', pnpm: 'pnpm@12.21.0' };

/** The package with nothing but the program `node`. */
export const NODE_PACKAGE = `node-${SHELL ? 'win' : process.platform}-${process.arch}`;

/** Where that package has it, from the application's folder. */
export const NODE_PROGRAM = join('node_modules', NODE_PACKAGE, SHELL ? 'bin/node.exe' : 'bin/node');

/**
 * Makes the application of a recipe in a folder of its own, and runs its commands on a database of its own.
 * @param {Recipe} recipe
 * @param {string} archive the packed library
 * @param {string} folder
 * @param {string} server the URL of a server
 */
export async function tryRecipe(recipe, archive, folder, server) {
  const cwd = join(folder, recipe.name);
  for (const [file, source] of Object.entries(recipe.files)) await cp(join(SOURCES, source), join(cwd, file));
  const dependencies = {
    ...recipe.packages,
    'nestjs-cyclone': `file:${archive}`,
    ...(recipe.node ? { [NODE_PACKAGE]: recipe.node } : {}),
  };
  const manifest = { name: recipe.name, private: true, type: recipe.type, dependencies };
  await writeFile(join(cwd, 'package.json'), JSON.stringify(manifest));
  const command = await install(recipe, cwd);

  const url = await database(server, recipe.name);
  const alone = join(folder, `${recipe.name}-alone`);
  for (const { run: line, refuses, env, answers, alone: bundle } of recipe.commands) {
    if (bundle) {
      await rm(alone, { recursive: true, force: true });
      await cp(join(cwd, bundle), alone, { recursive: true });
    }
    const [file, args] = command(line);
    const options = {
      cwd: bundle ? alone : cwd,
      env: { ...process.env, NODE_PATH: '', DATABASE_URL: url, ...env },
      timeout: PATIENCE_MS,
    };
    const outcome = await run(file, args, options).then(
      ({ stdout }) => ({ failed: false, text: stdout }),
      (error) => ({ failed: true, text: `${error.stdout}\n${error.stderr}\n${error.message}` }),
    );
    assert.equal(outcome.failed, refuses !== undefined, `${line.join(' ')}\n${outcome.text}`);
    if (refuses) assert.ok(outcome.text.includes(refuses), outcome.text);
    if (answers) assert.deepEqual(answerOf(outcome.text), answers, outcome.text);
    console.log(`  ok      ${line.join(' ')}${refuses ? ` (refuses: ${refuses})` : ''}`);
  }
  await rm(cwd, { recursive: true, force: true });
  await rm(alone, { recursive: true, force: true });
}

/** @param {string} text */
function answerOf(text) {
  const { renewals, ...answer } = JSON.parse(text.trimEnd().split('\n').at(-1) ?? '');
  return renewals ? { ...answer, by: renewals.by } : answer;
}

/**
 * Installs the packages and gives the way to run a command.
 * @param {Recipe} recipe
 * @param {string} cwd
 * @returns {Promise<(line: readonly string[]) => [string, string[]]>}
 */
async function install({ manager = 'npm', node }, cwd) {
  const program = node ? join(cwd, NODE_PROGRAM) : process.execPath;
  const own = (/** @type {string} */ name) => (name.startsWith('./') ? name : `node_modules/${name}`);
  if (manager === 'npm') {
    await run('npm', ['install', ...NPM_FLAGS], { cwd, shell: SHELL });
    return ([name = '', ...args]) => [program, [own(name), ...args]];
  }
  const tools = join(dirname(cwd), `${manager}-itself`);
  await mkdir(tools, { recursive: true });
  await run('npm', ['install', ...NPM_FLAGS, '--prefix', tools, MANAGERS[manager]], { cwd: tools, shell: SHELL });
  if (manager === 'pnpm') {
    const pnpm = join(tools, 'node_modules/pnpm/bin/pnpm.mjs');
    await run(process.execPath, [pnpm, 'install', '--ignore-scripts', '--no-frozen-lockfile'], { cwd });
    return ([name = '', ...args]) => [program, [own(name), ...args]];
  }
  // Yarn reads no .npmrc.
  const { stdout: registry } = await run('npm', ['config', 'get', 'registry'], { cwd, shell: SHELL });
  const env = { ...process.env, YARN_NPM_REGISTRY_SERVER: registry.trim().replace(/\/$/, '') };
  const yarn = join(tools, 'node_modules/@yarnpkg/cli-dist/bin/yarn.js');
  await run(process.execPath, [yarn, 'install'], { cwd, env });
  return ([name = '', ...args]) => [
    process.execPath,
    name.startsWith('./') ? [yarn, 'node', name, ...args] : [yarn, 'run', name.split('/').at(-1) ?? '', ...args],
  ];
}

/**
 * @param {string} server
 * @param {string} recipe
 * @returns {Promise<string>} the URL of a new database
 */
async function database(server, recipe) {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  await client.query(`create database "${recipe}"`);
  await client.end();
  return Object.assign(new URL(server), { pathname: `/${recipe}` }).href;
}
