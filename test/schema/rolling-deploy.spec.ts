import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { SCHEMA_VERSION } from '#cyclone/store/migration-files.js';
import { ROOT } from '../structure/source-files.js';
import { createDatabase, type TestDatabase } from '../support/postgres.js';
import { newerLibrary, PRESENT, type Library } from './newer-library.js';

const run = promisify(execFile);

/** A process with one of the libraries, which works until it is stopped. */
class Application {
  readonly problems: string[] = [];
  completed = 0;
  failure: string | undefined;
  readonly ended: Promise<unknown>;
  private readonly child: ChildProcess;
  private heard = (): void => undefined;

  constructor({ index }: Library, url: string) {
    const program = join(ROOT, 'test/schema/upgrade-worker.mjs');
    this.child = spawn(process.execPath, [program, JSON.stringify({ library: index, url })], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => this.problems.push(text));
    this.ended = once(this.child, 'close');
    this.child.on('message', (message: { problem?: string; completed?: number; failed?: string }) => {
      if (message.problem !== undefined) this.problems.push(message.problem);
      this.completed += message.completed ?? 0;
      this.failure ??= message.failed;
      this.heard();
    });
  }

  /** @throws Error when the process ends before */
  async completes(runs: number): Promise<void> {
    const wanted = this.completed + runs;
    const done = new Promise<void>((resolve) => (this.heard = () => this.completed >= wanted && resolve()));
    const early = this.ended.then(() => {
      throw new Error(`It ended after ${this.completed} runs: ${this.failure}\n${this.problems.join('\n')}`);
    });
    await Promise.race([done, early]);
  }

  async stop(): Promise<void> {
    if (this.child.connected) this.child.send('stop');
    await this.ended;
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }
}

let database: TestDatabase;
let client: pg.Client;
const applications: Application[] = [];
function start(library: Library): Application {
  const application = new Application(library, database.url);
  applications.push(application);
  return application;
}
const migrateWith = ({ command }: Library) =>
  run(process.execPath, [command, 'migrate', '--database-url', database.url], { cwd: ROOT });
async function value(sql: string): Promise<unknown> {
  const { rows } = await client.query<Record<string, unknown>>(sql);
  return Object.values(rows[0] ?? {})[0];
}

beforeEach(async () => {
  database = await createDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query('create table bookings (run_id bigint, node text)');
});
afterEach(async () => {
  for (const application of applications.splice(0)) application.kill();
  await client.end();
  await database.drop();
});

const ADDITION = `alter table cyclone_steps add column next_thing text;
create index cyclone_steps_next on cyclone_steps (run_id) where next_thing is not null`;

describe('a rolling deploy of a release with a newer schema', () => {
  it('fails nothing of the old workers, which go on and start again on the newer schema (R22)', async () => {
    const newer = newerLibrary([{ compatibleFrom: SCHEMA_VERSION, sql: ADDITION }]);
    try {
      await migrateWith(PRESENT);
      const old = [start(PRESENT), start(PRESENT)];
      await Promise.all(old.map((application) => application.completes(30)));
      await migrateWith(newer);
      const installed = await value('select functions from cyclone_schema_version order by version desc limit 1');
      await Promise.all(old.map((application) => application.completes(30)));

      const all = [...old, start(newer), start(PRESENT)];
      await Promise.all(all.map((application) => application.completes(30)));
      for (const application of all) await application.stop();

      expect(all.map(({ failure, problems }) => ({ failure, problems }))).toEqual(
        all.map(() => ({ failure: undefined, problems: [] })),
      );
      const completed = all.reduce((sum, application) => sum + application.completed, 0);
      expect(await value(`select count(*)::int from cyclone_v_runs where state = 'completed'`)).toBe(completed);
      expect(await value('select count(*)::int from cyclone_v_runs')).toBe(completed);
      expect(await value('select count(*)::int from bookings')).toBe(completed);
      expect(await value('select count(distinct run_id)::int from bookings')).toBe(completed);
      // An old worker that starts with migrationsRun puts neither the old functions back nor the old version.
      expect(await value('select functions from cyclone_schema_version order by version desc limit 1')).toBe(installed);
      expect(await value('select max(version) from cyclone_schema_version')).toBe(SCHEMA_VERSION + 1);
    } finally {
      newer.remove();
    }
  });

  it('refuses the start of a library that the schema does not serve any more, and says what to do (R22)', async () => {
    const newer = newerLibrary([
      { compatibleFrom: SCHEMA_VERSION, sql: ADDITION },
      { compatibleFrom: SCHEMA_VERSION + 2, sql: 'alter table cyclone_attempts add column other text' },
    ]);
    try {
      await migrateWith(newer);
      const old = start(PRESENT);
      await old.ended;
      expect(old.failure).toMatch(/^SchemaVersionError: /);
      expect(old.failure).toContain(`version ${SCHEMA_VERSION + 2} or later: upgrade nestjs-cyclone`);
      await expect(migrateWith(PRESENT)).rejects.toThrow('upgrade nestjs-cyclone');
      const next = start(newer);
      await next.completes(3);
      await next.stop();
      expect(next.problems).toEqual([]);
    } finally {
      newer.remove();
    }
  });
});
