import pg from 'pg';
import { crashRun } from '../support/crash-runs.js';
import { CrashGate } from '../support/crash-gate.js';
import { historyProblems } from '../support/crash-history.js';
import { prepareCrashDatabase } from '../support/crash-slot.js';
import { WorkerProcess } from '../support/crash-worker.js';
import { startPostgres, type PostgresServer } from '../support/postgres.js';

const RUNS = 150;
/** An entry, a step that completes with a flush, and one that fails once. */
const RUN = crashRun({
  entry: { kind: 'ledger' },
  plain: { kind: 'plain', after: ['entry'] },
  failing: { kind: 'failOnce', after: ['plain'] },
  last: { kind: 'ledger', after: ['failing'] },
});

let server: PostgresServer;
let workers: WorkerProcess[] = [];

beforeAll(async () => {
  server = await startPostgres();
  await prepareCrashDatabase(server.url);
});
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.kill()));
  await server.destroy();
});

/** Runs `work` with a connection that lives no longer than that. */
async function look<T>(work: (gate: CrashGate) => Promise<T>): Promise<T> {
  const gate = await CrashGate.open(server.url);
  try {
    return await work(gate);
  } finally {
    await gate.close();
  }
}

/** Waits until the workers are in the midst of the runs. */
const untilUnderLoad = () =>
  look((gate) =>
    gate.untilQuery(`select count(*) filter (where state = 'completed') between 5 and ${RUNS / 2} from cyclone_runs`),
  );

const untilDone = () =>
  look((gate) => gate.untilQuery(`select count(*) > 0 and bool_and(state = 'completed') from cyclone_runs`));

describe('a PostgreSQL that stops under load and starts again (R21, S4, S38)', () => {
  it.each(['fast', 'immediate'] as const)('in mode %s costs no run, no second effect, and no process', async (mode) => {
    workers =
      workers.length > 0
        ? workers
        : await Promise.all([WorkerProcess.boot(server.url), WorkerProcess.boot(server.url)]);
    const [one, other] = workers as [WorkerProcess, WorkerProcess];
    await one.submit(Array.from({ length: RUNS }, () => RUN));
    await Promise.all(workers.map((worker) => worker.start({ leaseTtl: 2_000, queues: { default: 3 } })));
    await untilUnderLoad();

    await server.stop(mode);
    await expect(other.submit([RUN])).rejects.toThrow(/ECONNREFUSED|terminat/);
    await server.start();

    await untilDone();
    await Promise.all(workers.map((worker) => worker.stop()));
    expect(workers.map(({ isAlive, stderr }) => ({ isAlive, stderr }))).toEqual(
      workers.map(() => ({ isAlive: true, stderr: '' })),
    );

    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    try {
      expect(await historyProblems(client)).toEqual([]);
      const { rows } = await client.query('select count(*)::int as runs from cyclone_runs');
      expect(rows).toEqual([{ runs: RUNS }]);
      await client.query(
        'truncate cyclone_runs, cyclone_steps, cyclone_deps, cyclone_attempts, cyclone_workers, ledger, step_log',
      );
    } finally {
      await client.end();
    }
  });
});
