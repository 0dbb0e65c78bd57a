import { Logger, type INestApplicationContext, type LoggerService, type ModuleMetadata } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { TypeOrmModule } from '@nestjs/typeorm';
import pg from 'pg';
import { CycloneModule, type CycloneOptions } from 'nestjs-cyclone';
import { createDatabase, type TestDatabase } from '../support/postgres.js';

/** Keeps what an application logs, in place of printing it. */
export class LogBook implements LoggerService {
  readonly lines: string[] = [];
  private write(level: string, message: unknown, rest: unknown[]): void {
    this.lines.push([level, rest.at(-1), message].map(String).join(' '));
  }
  log(message: unknown, ...rest: unknown[]): void {
    this.write('log', message, rest);
  }
  warn(message: unknown, ...rest: unknown[]): void {
    this.write('warn', message, rest);
  }
  error(message: unknown, ...rest: unknown[]): void {
    this.write('error', message, rest);
  }
}

/** The applications of one test file, on a database of their own. */
export class Applications {
  private readonly open: INestApplicationContext[] = [];
  readonly logs = new LogBook();

  private constructor(
    readonly database: TestDatabase,
    private readonly admin: pg.Client,
  ) {}

  static async create(): Promise<Applications> {
    const database = await createDatabase();
    // Beside the database under test, so that it is not counted among the connections to it.
    const admin = new pg.Client({ connectionString: database.url });
    await admin.connect();
    return new Applications(database, admin);
  }

  /** TypeORM as an application imports it. */
  typeorm(options: { readonly name?: string; readonly poolSize?: number; readonly applicationName?: string } = {}) {
    return TypeOrmModule.forRoot({
      type: 'postgres',
      url: this.database.url,
      poolSize: 8,
      applicationName: 'application',
      retryAttempts: 1,
      ...options,
    });
  }

  /** Starts an application with TypeORM and an unnamed Cyclone that migrates, unless `imports` are given. */
  async start(
    metadata: ModuleMetadata & { readonly cyclone?: CycloneOptions },
    afterCompile?: (app: INestApplicationContext) => void,
  ): Promise<INestApplicationContext> {
    const { cyclone, imports, ...rest } = metadata;
    const builder = Test.createTestingModule({
      ...rest,
      imports: imports ?? [this.typeorm(), CycloneModule.forRoot({ migrationsRun: true, ...cyclone })],
    }).setLogger(this.logs);
    const app = await builder.compile();
    this.open.push(app);
    afterCompile?.(app);
    await app.init();
    return app;
  }

  /** What a refused start was refused with. */
  async refusal(...args: Parameters<Applications['start']>): Promise<Error> {
    return this.start(...args).then(
      () => {
        throw new Error('The application has started.');
      },
      (error: unknown) => error as Error,
    );
  }

  async sql<T = Record<string, unknown>>(text: string, values?: unknown[]): Promise<T[]> {
    return (await this.admin.query(text, values)).rows as T[];
  }

  /** The names of the sessions that are open beside the test's own. */
  async sessions(): Promise<string[]> {
    const rows = await this.sql<{ name: string }>(
      `select application_name as name from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend' order by 1`,
    );
    return rows.map(({ name }) => name);
  }

  /** Resolves once no session is open beside the test's own: the server takes a moment to end one. */
  async noSessions(): Promise<void> {
    while ((await this.sessions()).length > 0) await new Promise((resolve) => setImmediate(resolve));
  }

  async closeAll(): Promise<void> {
    for (const app of this.open.splice(0)) await app.close();
    this.logs.lines.length = 0;
  }

  async end(): Promise<void> {
    await this.closeAll();
    await this.admin.end();
    await this.database.drop();
    Logger.overrideLogger(['error', 'warn']);
  }
}
