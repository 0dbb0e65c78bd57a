import { literal } from './literal.js';
import type { RawClient } from './raw-client.js';
import { quoteIdentifier } from './identifier.js';
import { KEEP_ON_OWN_TERMS, MAY_IT_WRITE, ReadOnlySessionError } from './session-terms.js';
import type { Session } from './session.js';

/** Makes the session plan its statements anew; it keeps the prepared statements themselves (C1). */
export async function discardPlans(session: Session): Promise<void> {
  await session.script('discardPlans', 'discard plans');
}

/**
 * Gives a session that the engine keeps for itself a name, by which others can end it (C4), and the engine's terms, in one message. Behind a
 * pooler it would set them for somebody else, so there each call brings its own. Rejects with SQLSTATE 25006 when it may not write.
 */
export async function keepSession(session: Session, name: string): Promise<void> {
  const results = await session.script(
    'keepSession',
    `set application_name = ${literal(name)}; ${session.isOwn ? `${KEEP_ON_OWN_TERMS}; ` : ''}${MAY_IT_WRITE}`,
  );
  const [readOnly, standby] = results.at(-1)?.rows[0] ?? [];
  if (readOnly === 'on') throw new ReadOnlySessionError(standby === 't');
}

/**
 * Gives the session a name in pg_stat_activity, by which others can end it (C4), and its transactions READ COMMITTED, whatever the default
 * has become since the worker started: at another level two steps that complete together do not see each other.
 */
export async function nameSession(session: Session, name: string): Promise<void> {
  const isolation = `set default_transaction_isolation = 'read committed'`;
  await session.script('nameSession', `set application_name = ${literal(name)}; ${isolation}`);
}

/** Gives the session back the name and the isolation that it was opened with. */
export async function unnameSession(session: Session): Promise<void> {
  await session.script('unnameSession', 'reset application_name; reset default_transaction_isolation');
}

/** Begins to listen, outside any transaction: a listener inside one would fill the server's notification queue. */
export async function listenOn(client: RawClient, channel: string): Promise<void> {
  await client.query({ text: `listen ${quoteIdentifier(channel)}` });
}
