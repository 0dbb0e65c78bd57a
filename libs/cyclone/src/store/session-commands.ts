import { literal } from './literal.js';
import type { RawClient } from './raw-client.js';
import { quoteIdentifier } from './identifier.js';
import type { Session } from './session.js';

/** Makes the session plan its statements anew; it keeps the prepared statements themselves (C1). */
export async function discardPlans(session: Session): Promise<void> {
  await session.script('discardPlans', 'discard plans');
}

/** Gives the session a name in pg_stat_activity, by which others can end it (C4). */
export async function nameSession(session: Session, name: string): Promise<void> {
  await session.script('nameSession', `set application_name = ${literal(name)}`);
}

/** Gives the session back the name that it was opened with. */
export async function unnameSession(session: Session): Promise<void> {
  await session.script('unnameSession', 'reset application_name');
}

/** Begins to listen, outside any transaction: a listener inside one would fill the server's notification queue (S82). */
export async function listenOn(client: RawClient, channel: string): Promise<void> {
  await client.query({ text: `listen ${quoteIdentifier(channel)}` });
}
