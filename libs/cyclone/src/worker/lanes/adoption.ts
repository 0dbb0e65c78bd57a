import type { EngineRow } from '../../store/engine-row.js';
import type { Session } from '../../store/session.js';
import type { Execution } from '../execution.js';
import type { Reservation } from '../slots.js';
import type { LaneHost } from './lane-host.js';

/** A call whose answer was lost. */
export interface Doubt {
  /** The name of the session that made it. */
  readonly session: string;
  readonly executions: readonly Execution[];
  readonly reservation: Reservation | undefined;
  /** On the monotonic clock. */
  readonly sentAt: number;
}

/** Executions that the lost call did not settle, to be sent again; `wait`: its session still lives, or one of its steps is locked. */
export type Decision = 'wait' | { readonly unsettled: readonly Execution[] };

/**
 * Finds out what became of a call (C4): steps that it completed are completed, steps that it claimed are started, and what it
 * did not settle is named. Nothing is guessed.
 */
export async function decideDoubt(host: LaneHost, session: Session, doubt: Doubt): Promise<Decision> {
  const rows = await host.engine.store.adopt(session, host.owner, doubt.session, doubt.executions, host.book.list());
  if (rows.some((row) => row.event === 'wait')) return 'wait';
  if (doubt.reservation) host.slots.settle(doubt.reservation, new Map());
  const answers = new Map<string, EngineRow>();
  const found: EngineRow[] = [];
  for (const row of rows) {
    if (row.event === 'claimed') found.push(row);
    else answers.set(`${row.runId}:${row.node}`, row);
  }
  const unsettled: Execution[] = [];
  for (const execution of doubt.executions) {
    const answer = answers.get(execution.key);
    if (answer?.event === 'unsettled') unsettled.push(execution);
    // Put back or discarded: by this settlement or by somebody else's, nobody can tell, and nothing is left to do.
    else if (execution.settlement) host.settled(execution);
    else if (answer?.event === 'completed' && answer.info.state === 'completed') host.completed(execution);
    else host.lost(execution);
  }
  host.engine.events.emitRows(found, host.owner);
  for (const row of found) {
    host.slots.take(row.queue);
    host.execute(row, doubt.sentAt);
  }
  // What the lost call promoted is not known either: everybody may look.
  host.engine.notifier.wake({ queues: host.slots.names });
  return { unsettled };
}
