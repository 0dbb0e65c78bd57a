// npm run bench -- --quick: one JSON line a reading. See README.md for what they mean.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { NestFactory } from '@nestjs/core';
import { WorkflowClient } from 'nestjs-cyclone';
import pg from 'pg';
import { startPostgres } from '../test/support/postgres-server.mjs';
import { measureBare } from './bare.mjs';
import { countStatements } from './statement-counter.mjs';
import { Chain, bench, benchModule } from './workload.mjs';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: 'noop,chain,ledger' },
    memory: { type: 'boolean', default: false },
    idle: { type: 'boolean', default: false },
  },
});

const SCHEMA = 'cyclone_bench';
const REPETITIONS = options.quick ? 1 : 3;
const STEPS = options.quick ? 20_000 : 100_000;
/** How far ahead the backlog is due, so that all of it is there before the first claim. */
const LEAD_MS = options.quick ? 10_000 : 40_000;
const SLOTS = { bench: 400, ledger: 64 };
/** Of these, 16 carry completion transactions, as many as the bare queue's: two lanes and one in reserve are the others. */
const POOL = 19;
const SUBMIT_BATCH = 2_000;

const server = process.env.DATABASE_URL
  ? undefined
  : await startPostgres({ settings: { fsync: true, full_page_writes: true } });
const url = process.env.DATABASE_URL ?? server.url;
const admin = new pg.Client({ connectionString: url });
await admin.connect();

try {
  const workloads = options.memory || options.idle ? [] : options.only.split(',');
  for (const workload of workloads) {
    for (let i = 0; i < REPETITIONS; i++) {
      const cold = await measure(workload, false);
      const analysed = await measure(workload, true);
      const bare = await measureBare(url, workload, runsOf(workload));
      report({
        workload,
        stepsPerSecond: cold,
        vsBare: cold / bare,
        coldVsAnalysed: cold / analysed,
        barePerSecond: bare,
      });
    }
  }
  if (options.memory) await measureMemory();
  if (options.idle) await measureIdle();
} finally {
  await admin.query(`drop schema if exists ${SCHEMA} cascade`);
  await admin.end();
  await server?.destroy();
}

function report(reading) {
  const rounded = Object.entries(reading).map(([key, value]) => [
    key,
    typeof value === 'number' ? Number(value.toPrecision(4)) : value,
  ]);
  console.log(JSON.stringify(Object.fromEntries(rounded)));
}

function runsOf(workload) {
  if (workload === 'chain') return Math.ceil(STEPS / 3);
  return workload === 'ledger' ? Math.ceil(STEPS / 4) : STEPS;
}

/** Starts a worker on empty tables, submits afterwards, and drains the backlog. */
async function measure(workload, analyse) {
  const { worker, client, close } = await start(SLOTS);
  const runs = runsOf(workload);
  const startAt = new Date(Date.now() + LEAD_MS);
  await submit(client, workload, runs, { startAt });
  if (Date.now() > startAt.getTime())
    throw new Error('The backlog was not complete when it became due: raise LEAD_MS.');
  if (analyse) await admin.query('analyze');
  const steps = runs * (workload === 'chain' ? 3 : 1);
  const { started, now } = await drained(worker, steps);
  const rate = steps / ((now - started) / 1000);
  await close();
  return rate;
}

async function start(queues, workerUrl = url) {
  await admin.query(`drop schema if exists ${SCHEMA} cascade`);
  await admin.query(
    'drop table if exists bench_ledger; create table bench_ledger (run_id bigint, node text, amount numeric)',
  );
  const settings = JSON.stringify({ url: workerUrl, schema: SCHEMA, queues, poolSize: POOL });
  const worker = fork(new URL('worker.mjs', import.meta.url), [settings], { execArgv: ['--expose-gc'] });
  await once(worker, 'message');
  const app = await NestFactory.createApplicationContext(benchModule(url, SCHEMA, false, 4), {
    logger: ['warn', 'error'],
  });
  const close = async () => {
    await app.close();
    worker.send('stop');
    await once(worker, 'exit');
  };
  return { worker, client: app.get(WorkflowClient), close };
}

async function submit(client, workload, runs, submitOptions) {
  for (let i = 0; i < runs; i += SUBMIT_BATCH) {
    const inputs = Array.from({ length: Math.min(SUBMIT_BATCH, runs - i) }, (_, j) => ({ value: i + j }));
    if (workload === 'chain') await client.submitMany(Chain, inputs, submitOptions);
    else await client.enqueueMany(workload === 'ledger' ? bench.book : bench.noop, inputs, submitOptions);
  }
}

/** Waits until every handler has run and the tables, which have the last word, say that every run has completed. */
async function drained(worker, steps) {
  for (;;) {
    const progress = await ask(worker, 'progress');
    if (progress.count >= steps) {
      const { rows } = await admin.query(
        `select not exists (select from ${SCHEMA}.cyclone_runs where state <> 'completed') as done`,
      );
      if (rows[0].done) return { ...progress, now: (await ask(worker, 'progress')).now };
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function ask(worker, question) {
  worker.send(question);
  const [answer] = await once(worker, 'message');
  return answer;
}

async function measureMemory() {
  const { worker, client, close } = await start({ bench: 400 });
  await submit(client, 'noop', 20_000, {});
  await drained(worker, 20_000);
  const before = await ask(worker, 'memory');
  await submit(client, 'noop', 200_000, {});
  await drained(worker, 220_000);
  const after = await ask(worker, 'memory');
  report({ workload: 'memory', steps: 200_000, heapGrowthMB: (after.heap - before.heap) / 2 ** 20 });
  await close();
}

async function measureIdle() {
  const proxy = await countStatements(url);
  const { worker, close } = await start(SLOTS, proxy.url);
  const read = async () => ({ ...(await ask(worker, 'memory')), ...proxy.counter, at: performance.now() });
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  const before = await read();
  await new Promise((resolve) => setTimeout(resolve, 60_000));
  const after = await read();
  const seconds = (after.at - before.at) / 1000;
  const busy = (after.cpu.user + after.cpu.system - before.cpu.user - before.cpu.system) / 1e6;
  report({
    workload: 'idle',
    seconds,
    connections: after.connections,
    statementsPerSecond: (after.statements - before.statements) / seconds,
    coreShare: busy / seconds,
  });
  await close();
  proxy.close();
}
