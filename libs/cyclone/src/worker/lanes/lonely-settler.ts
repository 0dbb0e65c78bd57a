import { isAnswer, isLockTimeout, isRefusal } from '../../store/database-fault.js';
import type { EngineRow } from '../../store/engine-row.js';
import { nameSession, unnameSession } from '../../store/session-commands.js';
import type { Session } from '../../store/session.js';
import { sleep } from '../../model/timer.js';
import { monotonicMs } from '../clock.js';
import type { Execution } from '../execution.js';
import type { Lane } from './lane.js';
import type { LaneHost } from './lane-host.js';

/** How long one step waits for its run before the next run gets its turn. */
const WAIT_MS = 1_000;

interface Waiting {
  readonly execution: Execution;
  readonly lane: Lane;
}

/**
 * Settles steps whose run stays locked by others, one at a time, waiting for the lock, on a connection of its own: the lanes
 * never wait (C2). Runs take turns, so that one that stays locked holds up no other.
 */
export class LonelySettler {
  private readonly runs = new Map<string, Waiting[]>();
  private working = false;
  private calls = 0;
  private readonly closing = new AbortController();

  constructor(private readonly host: Omit<LaneHost, 'lonely'>) {}

  add(execution: Execution, lane: Lane): void {
    const group = this.runs.get(execution.runId);
    if (group) group.push({ execution, lane });
    else this.runs.set(execution.runId, [{ execution, lane }]);
    if (!this.working) void this.work();
  }

  close(): void {
    this.closing.abort();
  }

  private async work(): Promise<void> {
    this.working = true;
    for (const [runId, group] of this.runs) {
      if (this.closing.signal.aborted) break;
      this.runs.delete(runId);
      const next = group.find(({ execution }) => execution.phase === 'handed');
      if (!next) continue;
      const rest = group.filter((waiting) => waiting !== next && waiting.execution.phase === 'handed');
      const stillLocked = await this.settle(next);
      if (stillLocked) for (const { execution, lane } of [next, ...rest]) this.add(execution, lane);
      else for (const waiting of rest) handBack(waiting);
    }
    this.working = false;
  }

  /** True when the run stayed locked. */
  private async settle(waiting: Waiting): Promise<boolean> {
    const { execution, lane } = waiting;
    const name = `cyclone-lane:${this.host.ownerHash}:alone:${++this.calls}`;
    const sentAt = monotonicMs();
    let sent = false;
    try {
      const rows = await this.host.engine.connections.use(async (session) => {
        await nameSession(session, name);
        sent = true;
        try {
          return await this.call(session, execution);
        } finally {
          await unnameSession(session);
        }
      }, `settlement of step ${execution.key}`);
      lane.settledAlone(rows, execution);
    } catch (error) {
      if (isLockTimeout(error)) return true;
      this.host.problems.report(`Step ${execution.key} could not be settled alone`, error);
      if (!sent) {
        await sleep(WAIT_MS, { signal: this.closing.signal });
        return true;
      }
      if (!isAnswer(error)) lane.doubt({ session: name, executions: [execution], reservation: undefined, sentAt });
      else if (!isRefusal(error)) handBack(waiting);
      else if (execution.settlement) this.host.giveUp(execution, error);
      else this.host.refuse(execution, error);
    }
    return false;
  }

  private async call(session: Session, execution: Execution): Promise<EngineRow[]> {
    const { engine, owner, maxReclaims } = this.host;
    return execution.settlement
      ? engine.store.settle(session, owner, [execution.settlement], maxReclaims, WAIT_MS)
      : engine.store.completeWaiting(session, owner, execution, WAIT_MS);
  }
}

/** Back to the lane, which tries it with others again. */
function handBack({ execution, lane }: Waiting): void {
  execution.misses = 0;
  lane.hand(execution);
}
