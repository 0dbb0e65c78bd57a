import { Session } from '#cyclone/store/session.js';
import type { RawClient } from '#cyclone/store/raw-client.js';
import type { EngineSession } from './engine-sql.js';

/** The connection of a test as the library's stores talk over it. */
export function sessionOf({ client }: EngineSession): Session {
  return new Session(client as unknown as RawClient, { preparedStatements: true });
}
