// node bench/scale.mjs: what operators look at, with 1,000 and with 1,000,000 finished steps in the tables; then a purge of all these runs
// by their retention while claims go on (--purge: this alone). One JSON line a reading. DATABASE_URL measures on a server of yours; build first.
import { parseArgs } from 'node:util';
import pg from 'pg';
import { DeadLetterStore } from '#cyclone/store/dead-letter-store.js';
import { examine } from '#cyclone/store/doctor/doctor.js';
import { InspectionStore } from '#cyclone/store/inspection-store.js';
import { migrate } from '#cyclone/store/migrator.js';
import { OperationsStore } from '#cyclone/store/operations-store.js';
import { Session } from '#cyclone/store/session.js';
import { readStats } from '#cyclone/store/stats.js';
import { resolveRetention } from '#cyclone/worker/retention-options.js';
import { RetentionSweep } from '#cyclone/worker/retention-sweep.js';
import { startPostgres } from '../test/support/postgres-server.mjs';

const { values: options } = parseArgs({
  options: {
    steps: { type: 'string', default: '1000000' },
    samples: { type: 'string', default: '15' },
    purge: { type: 'boolean', default: false },
  },
});
const FEW = 1_000;
const MANY = Number(options.steps);
const SAMPLES = Number(options.samples);
/** Postgres plans a statement anew for its first five executions. */
const WARM_UP = 6;
/** How long claims are measured alone. */
const ALONE_MS = 10_000;

const server = process.env.DATABASE_URL
  ? undefined
  : await startPostgres({ settings: { fsync: true, full_page_writes: true, max_wal_size: '4GB' } });
const url = process.env.DATABASE_URL ?? server.url;
const clients = [];
const admin = await open();
const small = cyclone('cyclone_scale_few');
const large = cyclone('cyclone_scale_many');
try {
  await fill(large, MANY);
  if (!options.purge) {
    await fill(small, FEW);
    await compare();
  }
  await measurePurge(large);
} finally {
  for (const { schema } of [small, large]) await admin.query(`drop schema if exists ${schema} cascade`);
  await Promise.all(clients.map((client) => client.end()));
  await server?.destroy();
}

function cyclone(schema) {
  return {
    schema,
    inspection: new InspectionStore(schema),
    operations: new OperationsStore(schema),
    deadLetters: new DeadLetterStore(schema),
  };
}

function report(reading) {
  const rounded = Object.entries(reading).map(([key, value]) => [
    key,
    typeof value === 'number' ? Number(value.toPrecision(3)) : value,
  ]);
  console.log(JSON.stringify(Object.fromEntries(rounded)));
}

async function open() {
  const client = new pg.Client({ connectionString: url });
  client.on('error', (error) => console.error(error.message));
  await client.connect();
  clients.push(client);
  return client;
}

/** So many finished runs, of which one in a hundred failed and one was cancelled, and the same 500 open ones in both schemas. */
async function fill({ schema }, finished) {
  await admin.query(`drop schema if exists ${schema} cascade`);
  await migrate(admin, { schema });
  await admin.query(`set search_path = ${schema}`);
  const failed = Math.floor(finished / 100);
  await insert(-500, -1, `'running'`, `'available'`);
  await insert(1, failed, `'failed'`, `'discarded'`);
  await insert(failed + 1, 2 * failed, `'cancelled'`, `'cancelled'`);
  await insert(2 * failed + 1, finished, `'completed'`, `'completed'`);
  await admin.query(`select setval('cyclone_runs_id_seq', $1)`, [finished]);
  await admin.query('vacuum analyze');
}

/** One run with one step for each id; finished ones are two months old. */
async function insert(from, to, runState, stepState) {
  const ended = `case when ${runState} in ('completed', 'failed', 'cancelled') then t end`;
  const source = `generate_series(${from}, ${to}) g cross join lateral (select now() - interval '60 days' + (g + 2000) * interval '1 ms' as t) x`;
  await admin.query(
    `insert into cyclone_runs (id, workflow, state, open_steps, uncontained_discards, created_at, starts_at, finished_at, failed_at, cancelled_at)
     overriding system value
     select g, 'flow' || g % 10, ${runState}, case when ${runState} = 'running' then 1 else 0 end, case when ${runState} = 'failed' then 1 else 0 end,
            t, t, ${ended}, case when ${runState} = 'failed' then t end, case when ${runState} = 'cancelled' then t end from ${source}`,
  );
  await admin.query(
    `insert into cyclone_steps (run_id, node, node_type, kind, queue, priority, state, open_deps, dependents, input, max_attempts, scheduled_at,
       available_at, finished_at, error, error_kind, error_fingerprint, contained)
     select g, 'a', 'step', 'kind' || g % 10, 'default', 0, ${stepState}, 0, 0, '{"value": 1}', 5, t, t, ${ended},
            case when ${stepState} = 'discarded' then 'boom' end, case when ${stepState} = 'discarded' then 'permanent' end,
            case when ${stepState} = 'discarded' then 'f' || g % 5 end, case when ${stepState} = 'discarded' then false end from ${source}`,
  );
}

/** Asks both schemas in turn, so that whatever else the machine does harms both alike. */
async function compare() {
  const few = readingsOf(small, new Session(await open(), { preparedStatements: true }), FEW);
  const many = readingsOf(large, new Session(await open(), { preparedStatements: true }), MANY);
  for (const name of Object.keys(few)) {
    const times = { few: [], many: [] };
    for (let i = -WARM_UP; i < SAMPLES; i++) {
      for (const [side, readings] of Object.entries({ few, many })) {
        const started = performance.now();
        await readings[name]();
        if (i >= 0) times[side].push(performance.now() - started);
      }
    }
    const [msFew, msMany] = [percentile(times.few, 0.5), percentile(times.many, 0.5)];
    report({ reading: name, [`ms${FEW}`]: msFew, [`ms${MANY}`]: msMany, ratio: msMany / msFew });
  }
}

function readingsOf({ schema, inspection, operations, deadLetters }, session, last) {
  const page = (filter, after) =>
    inspection.runPage(session, filter, { direction: 'desc', limit: 50, scan: 20_000, ...(after ? { after } : {}) });
  const middle = String(Math.floor(last / 2));
  return {
    stats: () => readStats(inspection, operations, session),
    'runs, newest': () => page({}),
    'runs, in the middle': () => page({}, middle),
    'runs, at the end': () => page({}, '20'),
    'runs of one workflow': () => page({ workflows: ['flow3'] }, middle),
    'completed runs': () => page({ states: ['completed'] }, middle),
    'failed runs': () => page({ states: ['failed'] }),
    'running runs': () => page({ states: ['running'] }),
    'dlq list': () => deadLetters.listExhausted(session, {}, 50),
    'dlq groups': () => deadLetters.groups(session, {}),
    explain: () => inspection.explain(session, '-300', 'a'),
    doctor: () => examine(session, schema, inspection, operations),
  };
}

function percentile(times, share) {
  return times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))];
}

/** Claims and completions on one connection, first alone, then beside the retention sweep of all finished runs on another. */
async function measurePurge({ schema, operations }) {
  const worker = await open();
  const observer = await open();
  await worker.query(`set search_path = ${schema}`);
  await worker.query(`delete from cyclone_steps where run_id between -500 and -1`);
  await worker.query(`delete from cyclone_runs where id between -500 and -1`);
  const state = { going: true, waited: 0 };
  const work = async () => {
    const times = [];
    let done = [];
    while (state.going) {
      await worker.query(
        `select cyclone_submit(null, array_fill('live'::text, '{50}'), array_fill(null::text, '{50}'), array_fill(null::jsonb, '{50}'),
           array_fill(null::bigint, '{50}'), array_fill(null::timestamptz, '{50}'), array_fill(null::bigint, '{50}'), array(select generate_series(1, 50)),
           array_fill('a'::text, '{50}'), array_fill('step'::text, '{50}'), array_fill('work'::text, '{50}'), array_fill('live'::text, '{50}'),
           array_fill(0, '{50}'), array_fill('1'::jsonb, '{50}'), array_fill(null::jsonb, '{50}'), array_fill(0, '{50}'), array_fill(0, '{50}'),
           array_fill(5, '{50}'), array_fill(null::jsonb, '{50}'), '{}', '{}', '{}')`,
      );
      const started = performance.now();
      const { rows } = await worker.query({
        name: 'flush',
        text: `select event, run_id, node, generation from cyclone_flush('me', 30000, $1, $2, $3, $4, '{live}', '{50}', '{work}', 4194304)`,
        values: [
          done.map((r) => r.run_id),
          done.map((r) => r.node),
          done.map((r) => r.generation),
          done.map(() => '1'),
        ],
      });
      times.push(performance.now() - started);
      done = rows.filter((row) => row.event === 'claimed');
    }
    return times;
  };
  const watch = async () => {
    while (state.going) {
      const { rows } = await observer.query(
        `select 1 from pg_stat_activity where pid = ${worker.processID} and wait_event_type = 'Lock'`,
      );
      state.waited += rows.length;
    }
  };

  const begun = performance.now();
  const alone = work();
  await new Promise((resolve) => setTimeout(resolve, ALONE_MS));
  state.going = false;
  const before = await alone;
  const perSecondAlone = before.length / ((performance.now() - begun) / 1000);

  state.going = true;
  const beside = work();
  const watching = watch();
  const session = new Session(await open(), { preparedStatements: true });
  const batches = [];
  let runs = 0;
  const started = performance.now();
  await new Promise((resolve, reject) => {
    const sweep = new RetentionSweep({
      engine: {
        connections: { use: (call) => call(session) },
        operations: {
          beginRound: () => Promise.resolve(true),
          purge: async (connection, request) => {
            const sentAt = performance.now();
            const batch = await operations.purge(connection, request);
            batches.push(performance.now() - sentAt);
            runs += batch.runs;
            if (batch.ended) resolve();
            return batch;
          },
        },
      },
      retention: resolveRetention({ defaultAge: '1d' }),
      problems: { report: (what, error) => reject(error ?? new Error(what)) },
    });
    sweep.run();
  });
  const seconds = (performance.now() - started) / 1000;
  state.going = false;
  await watching;
  const during = await beside;
  report({
    reading: 'purge',
    runs,
    runsPerSecond: runs / seconds,
    batchMs: percentile(batches, 0.5),
    slowestBatchMs: Math.max(...batches),
    throughputBesideToAlone: during.length / seconds / perSecondAlone,
    claimMsAlone: percentile(before, 0.5),
    claimMsBeside: percentile(during, 0.5),
    claimP99MsAlone: percentile(before, 0.99),
    claimP99MsBeside: percentile(during, 0.99),
    slowestClaimMsBeside: Math.max(...during),
    timesAClaimWaitedForALock: state.waited,
  });
}
