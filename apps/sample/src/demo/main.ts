// npm run demo: orders are charged by two worker processes, which are killed while they work. See USAGE in options.ts.
import 'reflect-metadata';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { generateOrders } from './generate-orders.js';
import { parseOptions, USAGE, type DemoOptions } from './options.js';
import { readOrders, type OrdersFile } from '../orders/read-orders.js';
import { exitCodeOf, printTally } from './tally.js';

const SHOWN_PROBLEMS = 20;

try {
  const options = parseOptions(process.argv.slice(2));
  if (options) await main(options);
  else console.log(USAGE);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}

async function main(options: DemoOptions): Promise<void> {
  const { orders, incomplete, problems } = await loadOrders(options);
  reportProblems(problems);
  if (incomplete > 0) console.log(`${incomplete === 1 ? '1 order is' : `${incomplete} orders are`} left out for it`);
  if (orders.length === 0) throw new Error('There is no order to work on.');

  // Once is enough, and the second one of an impatient user changes nothing: all ends in order.
  const interruption = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interruption.abort());

  // Nest and TypeORM take their time to load: only now, so that a wrong option is told at once.
  const { runDemo } = await import('./run-demo.js');
  const tally = await runDemo(orders, options, interruption.signal);
  if (!tally) {
    console.log('Stopped.');
    process.exitCode = 130;
    return;
  }
  printTally(tally);
  process.exitCode = exitCodeOf(tally);
}

async function loadOrders({ file, orders, seed }: DemoOptions): Promise<OrdersFile> {
  if (file === undefined) return readOrders([...generateOrders(orders, seed)].join(''));
  // npm runs its scripts in the project's folder, and tells where the user was.
  const path = existsSync(file) ? file : resolve(process.env.INIT_CWD ?? '.', file);
  try {
    return await readOrders(await readFile(path, 'utf8'));
  } catch (error) {
    throw new Error(`${file} cannot be used: ${(error as Error).message}`, { cause: error });
  }
}

function reportProblems(problems: OrdersFile['problems']): void {
  for (const { line, reason } of problems.slice(0, SHOWN_PROBLEMS))
    console.log(`line ${line} cannot be used: ${reason}`);
  const more = problems.length - SHOWN_PROBLEMS;
  if (more > 0) console.log(`and ${more} lines more`);
}
