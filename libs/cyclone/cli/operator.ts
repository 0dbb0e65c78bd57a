import { hostname, userInfo } from 'node:os';
import pg from 'pg';
import type { ClientLogger } from '#cyclone/client/definitions.js';
import { OperatorClient } from '#cyclone/client/operator-client.js';
import { MissingRightsError } from '#cyclone/model/errors/index.js';
import { Connections } from '#cyclone/store/connections.js';
import { Engine } from '#cyclone/store/engine.js';
import { sqlStateOf } from '#cyclone/model/sql-state.js';
import { checkSchemaName } from '#cyclone/store/identifier.js';
import { migrationStatus } from '#cyclone/store/migrator.js';
import { missingGrants } from '#cyclone/store/roles.js';
import type { Query } from '#cyclone/store/schema-status.js';
import { SCHEMA_OPTION, type Globals } from './command-line.js';
import { reasonOf, withPool } from './database.js';
import { poolSource } from './pool-source.js';

/** SQLSTATE of a role without the right. */
const FORBIDDEN = '42501';

/** SQLSTATEs of a schema that is not there, or not that of this package. */
const SCHEMA_IS_WRONG: ReadonlySet<unknown> = new Set(['42P01', '42883', '42703', '3F000']);

/** Runs `work` with an operator client on the database and schema that the command line names. */
export async function withOperator<T>(
  globals: Globals,
  logger: ClientLogger,
  work: (operator: OperatorClient) => Promise<T>,
): Promise<T> {
  const { schema } = globals;
  checkSchemaName(schema, SCHEMA_OPTION);
  return withPool(globals, async (pool) => {
    // One-shot calls gain nothing from prepared statements, and a pooler may be between.
    const connections = new Connections(poolSource(pool, pg), {
      preparedStatements: false,
      onWait: (message) => logger.warn(message),
    });
    const engine = new Engine(connections, schema, (what, error) => logger.warn(`${what}: ${reasonOf(error)}`));
    try {
      return await work(new OperatorClient(engine, logger));
    } catch (error) {
      const code = sqlStateOf(error);
      if (code !== FORBIDDEN && !SCHEMA_IS_WRONG.has(code)) throw error;
      const client = await pool.connect();
      try {
        if (code === FORBIDDEN) throw await rightsProblem(client, schema, error);
        throw (await migrationStatus(client, { schema })).problem ?? error;
      } finally {
        client.release();
      }
    } finally {
      await engine.notifier.close();
    }
  });
}

/** Which GRANTs are missing; the error itself when it was about something else. */
async function rightsProblem(client: pg.PoolClient, schema: string, error: unknown): Promise<unknown> {
  const query: Query = async (sql, values) => (await client.query(sql, values)).rows;
  const [row] = await query('select current_user::text as role');
  const grants = await missingGrants(query, schema, 'worker');
  return grants.length === 0 ? error : new MissingRightsError(String(row?.role), schema, grants, { cause: error });
}

/** Who is at the keyboard, for the audit. */
export function actorOf({ actor = process.env.CYCLONE_ACTOR }: Globals): string {
  return actor || `${userName()}@${hostname()}`;
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'unknown'; // a container may run under a user id without a name
  }
}
