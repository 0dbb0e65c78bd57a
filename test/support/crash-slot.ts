import pg from 'pg';
import { createDatabase, type TestDatabase } from './postgres.js';
import { CRASH_GATES, CrashGate } from './crash-gate.js';
import { historyProblems, prepareCrashSchema } from './crash-history.js';
import { WorkerProcess, type WorkerProcessOptions } from './crash-worker.js';

/** A database for crash tests, to be copied for each slot. */
export async function createCrashTemplate(): Promise<TestDatabase> {
  const database = await createDatabase();
  await prepareCrashDatabase(database.url);
  return database;
}

export async function prepareCrashDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await prepareCrashSchema(client);
  await client.query(CRASH_GATES);
  await client.end();
}

/** A database with two worker processes: one that meets the incident, and one that is there to finish what is left. */
export class CrashSlot {
  private readonly victims = new Map<string, Promise<WorkerProcess>>();
  private second: Promise<WorkerProcess> | undefined;
  private inUse = false;

  private constructor(
    private readonly database: TestDatabase,
    readonly gate: CrashGate,
  ) {}

  static async open(template: TestDatabase): Promise<CrashSlot> {
    const database = await createDatabase({ template: template.name });
    return new CrashSlot(database, await CrashGate.open(database.url));
  }

  get url(): string {
    return this.database.url;
  }

  /** The process that will meet the incident; a new one when the last was killed. */
  async victim(options: WorkerProcessOptions = {}): Promise<WorkerProcess> {
    this.inUse = true;
    const key = JSON.stringify(options);
    const known = await this.victims.get(key);
    if (known?.isAlive) return known;
    this.bootVictim(options);
    return this.victims.get(key) as Promise<WorkerProcess>;
  }

  /** Begins to start the next victim, while there is time: importing everything takes half a second. */
  bootVictim(options: WorkerProcessOptions = {}): void {
    const booting = WorkerProcess.boot(this.url, options);
    booting.catch(() => undefined); // whoever asks for the victim hears of it
    this.victims.set(JSON.stringify(options), booting);
  }

  /** The process that finishes what the victim has left. */
  survivor(): Promise<WorkerProcess> {
    return (this.second ??= WorkerProcess.boot(this.url));
  }

  /** Every run has ended. */
  runsEnd(): Promise<void> {
    return this.gate.untilQuery(`select not exists (select 1 from cyclone_runs where state in ('running', 'paused'))`);
  }

  /** Kills both processes: after a failure nobody knows what they are doing. */
  async killAll(): Promise<void> {
    await this.gate.openAll();
    await Promise.all(
      [...this.victims.values(), this.second].map(async (booting) => (await booting?.catch(() => undefined))?.kill()),
    );
    this.victims.clear();
    this.second = undefined;
  }

  /** Stops the workers, checks the history of all that happened since the last call, and forgets it. */
  async conclude(): Promise<string[]> {
    const alive: WorkerProcess[] = [];
    for (const booting of [...this.victims.values(), this.second]) {
      const worker = await booting;
      if (worker?.isAlive) alive.push(worker);
    }
    await Promise.all(alive.map((worker) => worker.stop()));
    await this.gate.untilQuery(
      `select not exists (select 1 from pg_stat_activity where datname = current_database() and application_name like 'cyclone%')`,
    );
    const problems = [
      ...(await historyProblems(this.gate.client)),
      ...alive.flatMap((worker) => (worker.stderr === '' ? [] : [worker.stderr])),
    ];
    this.inUse = false;
    await this.gate.rows(`select setval('guard_raised', 0, false)`);
    await this.gate.rows(
      'truncate cyclone_runs, cyclone_steps, cyclone_deps, cyclone_attempts, cyclone_workers, ledger, keyed_ledger, step_log',
    );
    return problems;
  }

  /** Starts all over when what happened since the last `conclude` came to no conclusion. */
  async reset(): Promise<void> {
    if (!this.inUse) return;
    await this.killAll();
    await this.conclude();
  }

  async close(): Promise<void> {
    await this.killAll();
    await this.gate.close();
    await this.database.drop();
  }
}
