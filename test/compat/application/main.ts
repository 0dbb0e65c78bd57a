// Uses the library as an application does, and says of each thing whether it works.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { execFile, fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { SchedulerRegistry } from '@nestjs/schedule';
import {
  InputValidationError,
  OperatorClient,
  RunFailedError,
  SchemaVersionError,
  WorkflowClient,
  cycloneMigrations,
} from 'nestjs-cyclone';
import { DataSource } from 'typeorm';
import { Application, OrderSteps, PlaceOrder, world, type Choices } from './orders.js';

const run = promisify(execFile);
const url = process.env['DATABASE_URL'] ?? '';
const TIMEOUT = { timeout: '30s' } as const;
let failures = 0;

async function check(what: string, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
    console.log(`  ok      ${what}`);
  } catch (error) {
    failures++;
    console.log(`  FAILED  ${what}\n${error instanceof Error ? error.stack : String(error)}`);
  }
}

function create(choices: Partial<Choices> = {}): Promise<INestApplication> {
  const module = Application.of({
    url,
    schema: 'engine',
    migrationsRun: true,
    worker: { pollInterval: '200ms' },
    ...choices,
  });
  return NestFactory.create(module, { logger: ['warn', 'error', 'fatal'], abortOnError: false });
}

const plain = await new DataSource({ type: 'postgres', url }).initialize();
await plain.query(
  'create table ledger (id serial primary key, run_id bigint not null, node text not null, amount numeric not null)',
);
const [{ version: postgres }] = (await plain.query(
  `select split_part(current_setting('server_version'), ' ', 1) as version`,
)) as [{ version: string }];
await writeFile('versions.json', JSON.stringify({ node: process.versions.node, postgres }));
const count = async (sql: string, values: unknown[] = []): Promise<number> => {
  const [row] = (await plain.query(`select count(*)::int as rows from ${sql}`, values)) as [{ rows: number }];
  return row.rows;
};

await check('the start is refused without tables', async () => {
  const app = await create({ migrationsRun: false });
  await assert.rejects(app.init(), (error) => SchemaVersionError.is(error));
  await app.close().catch(() => undefined); // Nest 11 runs the hooks of what never started, and some of them fail
});

for (const kind of ['http', 'context']) {
  await check(`a refused start ends the process and says what to do (${kind})`, async () => {
    const refused = run(process.execPath, ['dist/refused.js', kind], { timeout: 60_000 });
    await assert.rejects(refused, ({ code, stdout, stderr }: { code: unknown; stdout: string; stderr: string }) => {
      assert.equal(code, 1);
      assert.match(stdout + stderr, /The Cyclone tables are missing.*npx nestjs-cyclone migrate --schema nowhere/s);
      return true;
    });
  });
}

await check("TypeORM's migrations bring the schema up, and a start without migrationsRun accepts it", async () => {
  const migrations = cycloneMigrations({ schema: 'by_typeorm' });
  const dataSource = new DataSource({ type: 'postgres', url, migrations });
  await dataSource.initialize();
  assert.equal((await dataSource.runMigrations()).length, migrations.length);
  assert.equal((await dataSource.runMigrations()).length, 0);
  await dataSource.destroy();
  const app = await create({ schema: 'by_typeorm', migrationsRun: false, worker: false });
  await app.init();
  await app.close();
});

const app = await create();
await app.listen(0, '127.0.0.1');
const api = `${await app.getUrl()}/admin/api/v1`;
const workflows = app.get(WorkflowClient);
const operator = app.get(OperatorClient);
const database = app.get(DataSource);

await check('a run completes, and its business write with it', async () => {
  const placed = await workflows.submit(PlaceOrder, { id: 'o-1', amount: '12.50' });
  assert.deepEqual(await placed.result(TIMEOUT), { id: 'o-1', amount: '12.50' });
  assert.equal(await count('ledger where run_id = $1', [placed.id]), 1);
  assert.equal(await placed.wait(TIMEOUT), 'completed');
  assert.ok(app.get(OrderSteps).events.includes('charge'));
});

await check('a failed attempt is retried, and charges once', async () => {
  world.flaky.add('o-2');
  const placed = await workflows.submit(PlaceOrder, { id: 'o-2', amount: '1' });
  await placed.result(TIMEOUT);
  assert.equal(await count('engine.cyclone_attempts where run_id = $1', [placed.id]), 1);
  assert.equal(await count('ledger where run_id = $1', [placed.id]), 1);
});

await check('a failed run is brought back by an operator', async () => {
  world.cardsAreDeclined = true;
  const placed = await workflows.submit(PlaceOrder, { id: 'o-3', amount: '1' });
  await assert.rejects(placed.result(TIMEOUT), (error) => RunFailedError.is(error));
  world.cardsAreDeclined = false;
  await operator.retryAll(placed.id, { reason: 'the cards are good', actor: 'somebody' });
  assert.equal(await placed.wait(TIMEOUT), 'completed');
  assert.equal(await count('engine.cyclone_audit where run_id = $1', [placed.id]), 1);
});

await check('an input that its DTO class refuses starts nothing', async () => {
  const input = { id: 'o-4', amount: 7 } as unknown as { id: string; amount: string };
  await assert.rejects(workflows.submit(PlaceOrder, input), (error) => InputValidationError.is(error));
});

await check("submitOnce takes part in the caller's transaction", async () => {
  const submit = () =>
    database.transaction(async (tx) => workflows.submitOnce(PlaceOrder, 'o-5', { id: 'o-5', amount: '1' }, { tx }));
  const rolledBack = database.transaction(async (tx) => {
    await workflows.submitOnce(PlaceOrder, 'o-5', { id: 'o-5', amount: '1' }, { tx });
    throw new Error('no');
  });
  await assert.rejects(rolledBack, /^Error: no$/);
  assert.equal(await count(`engine.cyclone_v_runs where once_key = 'o-5'`), 0);
  const [first, second] = [await submit(), await submit()];
  assert.deepEqual([first.created, second.created, second.id], [true, false, first.id]);
  assert.equal(await first.wait(TIMEOUT), 'completed');
});

await check('a run is paused and resumed', async () => {
  const placed = await workflows.submit(PlaceOrder, { id: 'o-6', amount: '1' }, { delay: '1h' });
  await operator.pause(placed.id);
  assert.equal((await placed.info()).state, 'paused');
  await operator.resume(placed.id);
  assert.equal((await placed.info()).state, 'running');
  await operator.cancel(placed.id, { reason: 'no longer wanted' });
  assert.equal(await placed.wait(TIMEOUT), 'cancelled');
});

await check('the admin API is guarded, reads, and operates', async () => {
  assert.equal((await fetch(`${api}/runs`)).status, 403);
  const headers = { authorization: 'Bearer secret', 'content-type': 'application/json' };
  const page = (await (await fetch(`${api}/runs?key=o-5`, { headers })).json()) as { data: { state: string }[] };
  assert.deepEqual(
    page.data.map(({ state }) => state),
    ['completed'],
  );
  world.cardsAreDeclined = true;
  const placed = await workflows.submit(PlaceOrder, { id: 'o-7', amount: '1' });
  assert.equal(await placed.wait(TIMEOUT), 'failed');
  world.cardsAreDeclined = false;
  const retry = { method: 'POST', body: '{}', headers };
  assert.equal((await fetch(`${api}/runs/${placed.id}/retry-all`, retry)).status, 403);
  const marked = { ...retry, headers: { ...headers, 'x-cyclone-admin': '1' } };
  assert.equal((await fetch(`${api}/runs/${placed.id}/retry-all`, marked)).status, 200);
  assert.equal(await placed.wait(TIMEOUT), 'completed');
});

await check('housekeeping shows in the registry of timers', async () => {
  const registry = app.get(SchedulerRegistry, { strict: false });
  assert.ok([...registry.getIntervals(), ...registry.getTimeouts()].includes('cyclone:tick'));
});

await check('the doctor finds nothing wrong', async () => {
  const findings = await operator.doctor();
  assert.ok(findings.length > 5);
  assert.deepEqual(
    findings.filter(({ level }) => level === 'error' || level === 'warning'),
    [],
  );
});

await check('the command works', async () => {
  const command = ['node_modules/nestjs-cyclone/dist/cli/main.js', '--schema', 'engine', '--database-url', url];
  const { stdout } = await run(process.execPath, [...command, 'runs', 'list', '--key', 'o-5', '--format', 'json']);
  assert.match(stdout, /"completed"/);
  await run(process.execPath, [...command, 'doctor']);
});

await check('CommonJS loads it', async () => {
  const script = `const { CycloneModule } = require('nestjs-cyclone'); console.log(typeof CycloneModule.forRoot)`;
  const { stdout } = await run(process.execPath, ['--input-type=commonjs', '-e', script]);
  assert.equal(stdout.trim(), 'function');
});

await check('the application closes, and takes its connections along', async () => {
  await app.close();
  const others = `pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`;
  while ((await count(others)) > 0) await new Promise(setImmediate);
});

async function startWorker(): Promise<ChildProcess> {
  const child = fork(new URL('./worker.js', import.meta.url), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  await once(child, 'message');
  return child;
}

await check(
  'several processes share the work; one is killed, one ends in order, nothing is lost or done twice',
  async () => {
    const submitter = await create({ worker: false });
    await submitter.init();
    const [killed, ended] = await Promise.all([startWorker(), startWorker()]);
    const inputs = Array.from({ length: 60 }, (_, i) => ({ id: `many-${i}`, amount: '1' }));
    const client = submitter.get(WorkflowClient);
    const runs = await client.submitMany(PlaceOrder, inputs);
    await runs[5]?.wait(TIMEOUT);
    killed.kill('SIGKILL');
    runs.push(...(await client.submitMany(PlaceOrder, inputs)));
    assert.deepEqual(
      new Set(await Promise.all(runs.map((one) => one.wait({ timeout: '60s' })))),
      new Set(['completed']),
    );
    const ids = runs.map(({ id }) => id);
    assert.equal(await count('ledger where run_id = any($1::bigint[])', [ids]), runs.length);
    assert.equal(
      await count('(select distinct run_id from ledger where run_id = any($1::bigint[])) r', [ids]),
      runs.length,
    );

    const exit = once(ended, 'exit');
    ended.kill('SIGTERM');
    const [code, signal] = (await exit) as [number | null, string | null];
    assert.ok(code === 0 || signal === 'SIGTERM', `exit code ${code}, signal ${signal}`);
    assert.equal(await count(`engine.cyclone_v_steps where state = 'running'`), 0);
    await submitter.close();
  },
);

await plain.destroy();
process.exitCode = failures === 0 ? 0 : 1;
