import type { EngineRow } from '../store/engine-row.js';
import type { Engine } from '../store/engine.js';
import type { Lease } from '../store/lease.js';

/** Rows of leases that were taken away, or whose worker sits on the lock of the run although its lease has expired. */
const TAKEN: ReadonlySet<string> = new Set(['stuck', 'reclaimed', 'timed_out']);

/** What must follow a commit: events, wake-ups, and the end of sessions whose lease is gone. */
export class Aftermath {
  /** @param onTaken told of leases that were taken from running handlers: their sessions must end (C3) */
  constructor(
    private readonly engine: Engine,
    private readonly owner: string,
    private readonly onTaken: (leases: readonly Lease[]) => void,
  ) {}

  /** @param rows the answer of an engine function whose transaction has committed */
  of(rows: readonly EngineRow[]): void {
    if (rows.length === 0) return;
    this.engine.events.emitRows(rows, this.owner);
    let queues: Set<string> | undefined;
    let taken: EngineRow[] | undefined;
    for (const row of rows) {
      const { event, info } = row;
      // What was put back says when it may be claimed again.
      const delayMs = event === 'promoted' ? 0 : info.state === 'available' ? info.delayMs : undefined;
      if (delayMs === 0) (queues ??= new Set()).add(row.queue);
      else if (delayMs !== undefined) this.engine.notifier.expect([row.queue], delayMs);
      if (TAKEN.has(event) || info.was === 'running' || info.errorKind === 'reclaim_limit') (taken ??= []).push(row);
    }
    if (taken) this.onTaken(taken);
    if (queues || taken) {
      const cancelled = taken?.filter((row) => row.info.was === 'running').map((row) => row.runId) ?? [];
      this.engine.notifier.wake({ queues: [...(queues ?? [])], cancelled: [...new Set(cancelled)] });
    }
  }
}
