import { sleep } from '../../model/timer.js';
import type { Engine } from '../../store/engine.js';
import type { Lease } from '../../store/lease.js';
import type { ProblemLog } from '../worker-logger.js';

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 2_000;

/**
 * Decides a commit whose answer was lost (C4): asks the database until it is committed or aborted. A session that hangs in it is ended.
 * @param completes whether it was the engine's, so that the step has completed if and only if it is committed
 * @returns undefined when `signal` aborts first: then nobody here can know
 */
export async function decideCommit(
  engine: Engine,
  xid: string,
  lease: Lease,
  completes: boolean,
  problems: ProblemLog,
  signal: AbortSignal,
): Promise<'committed' | 'aborted' | undefined> {
  for (let pauseMs = FIRST_PAUSE_MS; !signal.aborted; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
    try {
      const status = await engine.connections.use(async (session) => {
        const now = await engine.store.transactionStatus(session, xid, completes ? lease : undefined);
        if (now === 'in progress') await engine.store.endBackends(session, [lease]);
        return now;
      }, 'look at a commit whose answer was lost');
      if (status === 'committed' || status === 'aborted') return status;
    } catch (error) {
      problems.report('What became of a commit could not be found out yet', error);
    }
    await sleep(pauseMs, { signal });
  }
  return undefined;
}
