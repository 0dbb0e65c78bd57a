import type { Connections } from './connections.js';
import { destroyClient, RAW_TYPES, type RawClient, type RawResult } from './raw-client.js';

/** Rounds of looking; one is enough unless others take sessions of the pooler at the same moment. */
const ROUNDS = 5;

/**
 * Whether the connections of a DataSource lead through a pooler that gives each transaction a session of the server, as pgbouncer does in
 * transaction mode. There a prepared statement belongs to somebody else the next time, and notifications are heard by nobody.
 *
 * A pooler tells its clients process ids of its own, so one look rules it out where there is none. Behind one, a second connection that holds a
 * transaction takes the session that the first one has just had, or the first one meets another session than before; in session mode neither happens.
 */
export async function sharesSessions(connections: Connections): Promise<boolean> {
  const direct = await connections.use(async ({ client }) => {
    const { processID } = client;
    return processID == null || (await sessionOf(client)) === processID;
  });
  if (direct) return false;
  const [first, second] = [
    await connections.openClient('cyclone-pooler'),
    await connections.openClient('cyclone-pooler'),
  ];
  try {
    const seen = new Set<number>();
    for (let round = 0; round < ROUNDS; round++) {
      seen.add(await sessionOf(first));
      await second.query({ text: 'begin' });
      const held = await sessionOf(second);
      await second.query({ text: 'rollback' });
      if (seen.size > 1 || seen.has(held)) return true;
    }
    return false;
  } finally {
    destroyClient(first);
    destroyClient(second);
  }
}

async function sessionOf(client: RawClient): Promise<number> {
  const result = await client.query({ text: 'select pg_backend_pid()', rowMode: 'array', types: RAW_TYPES });
  return Number((result as RawResult).rows[0]?.[0]);
}
