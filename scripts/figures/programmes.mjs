import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * What a programme said: its standard output, and the folder into which its tests wrote more.
 * @typedef {{ output: string, folder: string }} Said
 * @typedef {{ name: string, command: readonly string[], times?: number, read(said: readonly Said[]): unknown }} Programme
 */

/**
 * The programmes whose figures the documents quote. `read` makes the figures of what they said, and throws when they do not say it.
 * @type {readonly Programme[]}
 */
export const PROGRAMMES = [
  { name: 'demo', command: ['npm', 'run', 'demo', '--', '--orders', '800'], times: 5, read: readDemo },
  { name: 'proving', command: ['npm', 'run', 'proving'], read: readProving },
  { name: 'faults', command: ['npm', 'run', 'faults'], read: readFaults },
  { name: 'model', command: ['npm', 'run', 'model'], read: ([said]) => written(said, 'model') },
  { name: 'bench', command: ['npm', 'run', 'bench', '--', '--quick'], times: 3, read: readBench },
  { name: 'idle', command: ['npm', 'run', 'bench', '--', '--idle'], read: (said) => said.flatMap(jsonLines)[0] },
];

/** Runs a command as a user would, shows what it says, and keeps it. Rejects when it fails.
 * @param {readonly string[]} command
 * @param {string} folder where its tests may write figures
 * @param {string} cwd
 * @returns {Promise<Said>}
 */
export async function run([program = '', ...args], folder, cwd) {
  const child = spawn(program, args, {
    cwd,
    stdio: ['ignore', 'pipe', 'inherit'],
    shell: process.platform === 'win32',
    env: { ...process.env, CYCLONE_FIGURES: folder },
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
    process.stdout.write(text);
  });
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}: its figures stay as they are.`);
  return { output, folder };
}

/** @param {readonly Said[]} said */
function readDemo(said) {
  const tallies = said.map((one) => jsonLines(one).at(-1) ?? fail('the demo printed no tally'));
  const sum = (/** @type {string} */ key) => tallies.reduce((total, tally) => total + tally[key], 0);
  const [{ orders, expectedTotal }] = tallies;
  const totals = new Set(tallies.flatMap((tally) => [tally.ledgerTotal, tally.expectedTotal]));
  if (totals.size !== 1) fail(`the totals differ: ${[...totals].join(', ')}`);
  return {
    runs: tallies.length,
    orders,
    ledgerTotal: expectedTotal,
    ledgerRows: sum('ledgerRows'),
    kills: sum('kills'),
    reclaims: sum('reclaims'),
    lost: sum('lost'),
    duplicated: sum('duplicated'),
  };
}

/** Each test of the crash matrix is a cell: its name says what happened at which call. @param {readonly Said[]} said */
function readProving([said]) {
  const report = written(said, 'proving');
  const tests = report.testResults.flatMap((/** @type {any} */ file) =>
    file.assertionResults.map((/** @type {any} */ test) => ({ ...test, file: file.name.replaceAll('\\', '/') })),
  );
  const count = (/** @type {RegExp} */ file, title = /./) =>
    tests.filter((/** @type {any} */ test) => file.test(test.file) && title.test(test.title)).length;
  const matrix = /crash\/matrix\.spec/;
  return {
    cells: count(matrix),
    killed: count(matrix, /: killed /),
    sessionsEnded: count(matrix, /: backend terminated /),
    repliesLost: count(matrix, /: (reply dropped|connection cut)/),
    zombies: count(/crash\/zombies\.spec/),
    restarts: count(/crash\/postgres-restart\.spec/),
    failed: report.numFailedTests,
    hammer: written(said, 'hammer'),
  };
}

/** @param {readonly Said[]} said */
function readFaults([said]) {
  const { outages } = written(said, 'outages');
  return { outages, allAtOnce: written(said, 'all-at-once') };
}

/** @param {readonly Said[]} said */
function readBench(said) {
  const readings = said.flatMap(jsonLines);
  const workloads = [...new Set(readings.map(({ workload }) => workload))];
  const range = (/** @type {string} */ workload, /** @type {string} */ key) => {
    const values = readings.filter((reading) => reading.workload === workload).map((reading) => reading[key]);
    return { least: Math.min(...values), most: Math.max(...values) };
  };
  return Object.fromEntries(
    workloads.map((one) => [one, { vsBare: range(one, 'vsBare'), coldVsAnalysed: range(one, 'coldVsAnalysed') }]),
  );
}

/** The lines of the output that are JSON objects. @param {Said} said @returns {any[]} */
function jsonLines(said) {
  return said.output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
}

/** @param {Said | undefined} said @param {string} name */
function written(said, name) {
  return JSON.parse(readFileSync(join(said?.folder ?? '', `${name}.json`), 'utf8'));
}

/** @param {string} reason @returns {never} */
function fail(reason) {
  throw new Error(`No figures: ${reason}.`);
}
