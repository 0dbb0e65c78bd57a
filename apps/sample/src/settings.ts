import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { WorkerOptions } from 'nestjs-cyclone';

/** What an administrator can set. Inject it where it is needed; only `main.ts` knows that it comes from the environment. */
export class Settings {
  /** Where the application listens; other machines reach it only when this says so. */
  host = '127.0.0.1';
  port = 3000;
  /** Default: a PostgreSQL server of the application's own. */
  databaseUrl?: string;
  /** Where that server keeps its data. */
  postgresFolder = fileURLToPath(new URL('../.postgres', import.meta.url));
  /** The schema of all tables; it must exist. */
  schema = 'public';
  /** Without it, the admin routes stay closed. */
  adminToken?: string;
  /** How long the stand-in for the card terminal takes, in milliseconds. */
  cardLatency = 50;
  /** `false` for a process that submits orders and leaves the work to others. */
  worker?: false | WorkerOptions;

  constructor(values: Partial<Settings> = {}) {
    Object.assign(this, values);
  }

  /** @throws Error if PORT is not a port */
  static fromEnvironment(env: NodeJS.ProcessEnv = process.env): Settings {
    const port = Number(env.PORT || 3000);
    if (!Number.isInteger(port) || port < 0 || port > 65_535) {
      throw new Error(`PORT is "${env.PORT}", which is not a port: use a number from 1 to 65535.`);
    }
    return new Settings({
      ...(env.HOST ? { host: env.HOST } : {}),
      port,
      databaseUrl: env.DATABASE_URL || undefined,
      ...(env.POSTGRES_FOLDER ? { postgresFolder: resolve(env.POSTGRES_FOLDER) } : {}),
      adminToken: env.ADMIN_TOKEN || undefined,
    });
  }
}
