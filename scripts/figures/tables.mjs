import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';

/** @typedef {Record<string, any>} Figures of each programme, by its name */

/** What the tables say of a programme that has no figures yet. */
const NOT_MEASURED = 'not measured yet';

/**
 * The documents with tables made of figures, and the tables in them.
 * @type {Readonly<Record<string, Readonly<Record<string, (figures: Figures) => string>>>>}
 */
export const DOCUMENTS = {
  'README.md': { killed },
  'bench/README.md': { ratios },
};

/** The figures that were measured, by programme. @param {string} root */
export function readFigures(root) {
  const folder = join(root, 'docs/figures');
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'));
  return Object.fromEntries(
    files.map((file) => [file.slice(0, -'.json'.length), JSON.parse(readFileSync(join(folder, file), 'utf8'))]),
  );
}

/**
 * A document with its tables made anew. Throws when it has no place for one.
 * @param {string} document its path
 * @param {string} text
 * @param {Figures} figures
 */
export async function withTables(document, text, figures) {
  let result = text;
  for (const [name, makeTable] of Object.entries(DOCUMENTS[document] ?? {})) {
    const [begin, end] = [`<!-- figures: ${name}, by npm run figures -->`, '<!-- end of figures -->'];
    const from = result.indexOf(begin);
    const to = result.indexOf(end, from);
    if (from < 0 || to < 0) throw new Error(`${document} has no line ${begin} with ${end} after it.`);
    result = `${result.slice(0, from)}${begin}\n\n${makeTable(figures)}\n\n${result.slice(to)}`;
  }
  return format(result, { ...(await resolveConfig(document)), filepath: document });
}

/** @param {Figures} figures */
function killed({ demo, proving, faults, model, bench, idle }) {
  return table(
    ['what', 'how', 'outcome'],
    [
      row(
        demo,
        '`npm run demo`',
        ({ orders, runs, kills }) =>
          `${runs} times ${n(orders)} orders, charged by two processes; \`kill -9\` of one of them ${n(kills)} times in all`,
        ({ ledgerRows, ledgerTotal, reclaims, lost, duplicated }) =>
          `${n(ledgerRows)} ledger rows, ${ledgerTotal} each time; ${n(reclaims)} steps taken over, ${lost} orders lost, ${duplicated} charged twice`,
      ),
      row(
        proving,
        '`npm run proving`',
        ({ cells, killed: kills, sessionsEnded, repliesLost, zombies, restarts }) =>
          `at each call that a worker makes, before, in flight and after it (${n(cells)} cells): the process killed (${n(kills)}), its session ended (${n(sessionsEnded)}), its answer dropped (${n(repliesLost)}); processes stopped for two leases and continued (${n(zombies)}); Postgres stopped and started (${n(restarts)})`,
        ({ failed }) => `every run completes, one ledger row for each step; ${failed} failures`,
      ),
      row(
        proving,
        'the same',
        ({ hammer }) =>
          `${hammer.clients} clients cancel, pause, resume, retry and complete ${hammer.runs} runs at once for ${hammer.seconds} s: ${n(hammer.operations)} operations`,
        ({ hammer }) =>
          `${hammer.deadlocks} deadlocks, ${hammer.stranded} stranded runs, ${hammer.openTransactions} open transactions`,
      ),
      row(
        faults,
        '`npm run faults`',
        ({ allAtOnce: { restarts, backends, fullServerMs, readOnlyMs, fullDiskMs } }) =>
          `steps with one attempt each, and a database that restarts ${n(restarts)} times, ends ${n(backends)} sessions, refuses connections for ${seconds(fullServerMs)}, only reads for ${seconds(readOnlyMs)} and is full for ${seconds(fullDiskMs)}`,
        ({ allAtOnce: { completed, entries, charged } }) =>
          `${n(completed)} steps completed, ${n(entries)} ledger rows, ${charged} attempts charged`,
      ),
      row(
        faults,
        'the same',
        ({ outages }) =>
          `${n(outages.length)} outages ([docs/operations/outages.md](docs/operations/outages.md)) under a worker, a client and an operator`,
        ({ outages }) =>
          `all work done, once, uncharged; the next step completes ${seconds(Math.max(...outages.map((/** @type {any} */ one) => one.recoveredMs)))} after the end at the latest`,
      ),
      row(
        model,
        '`npm run model`',
        ({ sequences, storms }) =>
          `${n(sequences)} random lives of runs and ${n(storms)} storms beside a model of the rules`,
        ({ rows, least }) =>
          `each of the ${n(rows)} rows of the state machine that operations can take today was taken, at least ${n(least)} times, all alike`,
      ),
      row(
        bench,
        '`npm run bench -- --quick`',
        () => 'what is left of the rate of a bare hand-written queue ([bench](bench/README.md)), on two cores',
        ({ noop, chain, ledger }) =>
          `no-op steps ${range(noop.vsBare)}, chains of three ${range(chain.vsBare)}, a ledger write in each step's transaction ${range(ledger.vsBare)}`,
      ),
      row(
        idle,
        '`npm run bench -- --idle`',
        () => 'a worker without work for a minute',
        ({ statementsPerSecond, coreShare }) =>
          `${statementsPerSecond.toFixed(1)} statements a second, ${(coreShare * 100).toFixed(1)} % of a core`,
      ),
    ],
  );
}

/** @param {Figures} figures */
function ratios({ bench }) {
  const workloads = Object.entries(bench?.figures ?? {});
  return table(
    ['workload', 'vsBare', 'coldVsAnalysed'],
    workloads.map(([name, { vsBare, coldVsAnalysed }]) => [`\`${name}\``, range(vsBare), range(coldVsAnalysed)]),
  );
}

/**
 * @param {any} measured
 * @param {string} what
 * @param {(figures: any) => string} how
 * @param {(figures: any) => string} outcome
 */
function row(measured, what, how, outcome) {
  return measured ? [what, how(measured.figures), outcome(measured.figures)] : [what, NOT_MEASURED, ''];
}

/** @param {string[]} head @param {string[][]} rows */
function table(head, rows) {
  return [head, head.map(() => '-'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** @param {number} count */
function n(count) {
  return count.toLocaleString('en-US');
}

/** @param {number} ms */
function seconds(ms) {
  return `${Number((ms / 1000).toFixed(1))} s`;
}

/** @param {{ least: number, most: number }} ends */
function range({ least, most }) {
  const [from, to] = [least.toFixed(2), most.toFixed(2)];
  return from === to ? from : `${from} to ${to}`;
}
