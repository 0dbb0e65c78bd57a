import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { sleep } from '#cyclone/model/timer.js';
import { historyProblems, prepareCrashSchema } from '../support/crash-history.js';
import { startPostgres, type PostgresServer } from '../support/postgres.js';
import { SilentHost } from '../support/silent-host.js';
import { Application, type ApplicationOptions } from './application.js';

/** The role of the application: it owns the tables, and may nothing else. */
export const ROLE = 'app';
/** Small, so that a test can use them all up. */
const MAX_CONNECTIONS = 60;
const PATIENCE_MS = 60_000;

/** A server of its own, a database on it, and an application whose way to it can be cut. */
export class Stage {
  private readonly applications: Application[] = [];
  private readonly undo: (() => Promise<void>)[] = [];
  private readonly closing: (() => Promise<void>)[] = [];
  private readonly ways: SilentHost[] = [];
  private readonly others: PostgresServer[] = [];

  private constructor(
    /** The server that is the primary now. */
    public server: PostgresServer,
    readonly database: string,
  ) {}

  static async open(): Promise<Stage> {
    const server = await startPostgres({ settings: { max_connections: MAX_CONNECTIONS } });
    const stage = new Stage(server, 'shop');
    await stage.onServer(`create role ${ROLE} login`, `create database shop owner ${ROLE}`);
    const client = await stage.connect(stage.urlOf(ROLE));
    await prepareCrashSchema(client);
    await client.end();
    return stage;
  }

  urlOf(role: string, server = this.server): string {
    const url = new URL(server.url);
    url.pathname = `/${this.database}`;
    url.username = role;
    return url.href;
  }

  /** A way to the server that applications take, and that does what networks do. */
  async way(): Promise<SilentHost> {
    const way = await SilentHost.before(this.server.url);
    this.ways.push(way);
    return way;
  }

  /** A standby to which every commit is replicated before it is acknowledged. */
  async addStandby(): Promise<void> {
    this.others.push(await this.server.standby());
    await this.onServer(`alter system set synchronous_standby_names = '*'`, 'select pg_reload_conf()');
    await this.until(`select count(*) = 1 from pg_stat_replication where sync_state = 'sync'`);
  }

  /** The standby becomes the primary; the old one is not there any more. */
  async promoteStandby(): Promise<void> {
    const standby = this.others.pop() as PostgresServer;
    this.others.push(this.server);
    await standby.promote();
    this.server = standby;
  }

  async application(url: string, options: ApplicationOptions = {}): Promise<Application> {
    const application = await Application.open(url, options);
    this.applications.push(application);
    return application;
  }

  /** Runs statements as the superuser in the application's database, on a connection of their own; gives the rows of the last one. */
  async sql<T = Record<string, unknown>>(...statements: string[]): Promise<T[]> {
    return this.run<T>(this.urlOf('postgres'), statements);
  }

  /** The same in the server's own database. */
  async onServer(...statements: string[]): Promise<void> {
    await this.run(this.server.url, statements);
  }

  /** Ends the sessions of the application. Gives their number. */
  async cut(role = ROLE): Promise<number> {
    const [row] = await this.sql<{ n: number }>(
      `select count(pg_terminate_backend(pid))::int as n from pg_stat_activity where usename = '${role}'`,
    );
    return row?.n ?? 0;
  }

  /** Resolves when the query's only value is true. */
  async until(query: string): Promise<void> {
    await this.untilTrue(query, async () => {
      const [row] = await this.sql(query).catch(() => []);
      return row !== undefined && Object.values(row)[0] === true;
    });
  }

  /** Resolves when the server has logged the text so many times. */
  async untilLogged(text: string, times: number): Promise<void> {
    await this.untilTrue(
      `the server logs "${text}"`,
      async () => (await readFile(this.server.logFile, 'utf8')).split(text).length > times,
    );
  }

  async untilTrue(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
    const limit = performance.now() + PATIENCE_MS;
    while (!(await condition())) {
      if (performance.now() > limit) throw new Error(`It never came true: ${what}\n${await this.report()}`);
      await sleep(20);
    }
  }

  /** To be called when the outage is over, at the latest at the end. */
  onEnd(undo: () => Promise<void>): void {
    this.undo.push(undo);
  }

  /** To be called when everything is over. */
  onClose(undo: () => Promise<void>): void {
    this.closing.push(undo);
  }

  async endOutage(): Promise<void> {
    for (const undo of this.undo.splice(0).toReversed()) await undo();
  }

  /** How many steps have completed. */
  async completed(): Promise<number> {
    const [row] = await this.sql<{ n: number }>(
      `select count(*)::int as n from cyclone_steps where state = 'completed'`,
    );
    return row?.n ?? 0;
  }

  /** What is wrong with the history of everything in the database, and what was charged. */
  async problems(): Promise<string[]> {
    const client = await this.connect(this.urlOf('postgres'));
    try {
      const { rows: charged } = await client.query<{ problem: string }>(
        `select format('charged: %s/%s as %s: %s', run_id, node, outcome, error) as problem from cyclone_attempts
          where outcome in ('retried', 'timed_out', 'discarded')
         union all select format('run %s is %s', id, state) from cyclone_runs where state <> 'completed'`,
      );
      return [...(await historyProblems(client)), ...charged.map(({ problem }) => problem)];
    } finally {
      await client.end();
    }
  }

  async close(): Promise<void> {
    await this.endOutage().catch(() => undefined); // it failed already, and says so
    // Ways first: who came by one that is silent would wait for it.
    await Promise.all(this.ways.map((way) => way.close()));
    await Promise.all(this.applications.map((application) => application.close()));
    for (const undo of this.closing) await undo();
    await Promise.all([this.server, ...this.others].map((server) => server.destroy()));
  }

  /** For the message of a test that fails. */
  async report(): Promise<string> {
    const states = await this.sql(
      'select state, count(*)::int as steps, max(reclaims) as reclaims, max(error) as error from cyclone_steps group by state',
    ).catch(String);
    const logs = this.applications.map(({ log, worker }) => ({ health: worker.health(), log: log.slice(-40) }));
    return JSON.stringify({ states, logs }, undefined, 2);
  }

  private async run<T>(url: string, statements: readonly string[]): Promise<T[]> {
    const client = await this.connect(url);
    try {
      let rows: T[] = [];
      for (const statement of statements) rows = (await client.query(statement)).rows as T[];
      return rows;
    } finally {
      await client.end();
    }
  }

  async connect(url: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => undefined); // servers are stopped under it
    await client.connect();
    return client;
  }
}
