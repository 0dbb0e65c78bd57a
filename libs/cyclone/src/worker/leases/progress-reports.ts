import { mergeProgress } from '../../model/progress.js';
import type { ProgressBeat } from '../../store/engine-store.js';
import type { Lease } from '../../store/lease.js';

/** What a handler reported under a lease. */
export interface ProgressReport extends ProgressBeat {
  readonly fraction: number;
}

/** What handlers reported and no renewal has written yet: the newest of each lease. */
export class ProgressReports {
  private newest = new Map<string, ProgressReport>();

  add(reports: readonly ProgressReport[]): void {
    for (const report of reports) {
      const key = keyOf(report);
      this.newest.set(key, mergeProgress(this.newest.get(key), report));
    }
  }

  /**
   * The beats of these leases with what was reported under them; undefined when nothing was. It is out of here then, and so is what
   * was reported under leases that are no longer held.
   */
  take(leases: readonly Lease[]): readonly ProgressBeat[] | undefined {
    if (this.newest.size === 0) return undefined;
    const reports = this.newest;
    this.newest = new Map();
    const beats = leases.map((lease) => reports.get(keyOf(lease)) ?? { ...lease, fraction: null, note: null });
    return beats.some((beat) => beat.fraction !== null) ? beats : undefined;
  }

  /** Takes back what a renewal has not written; what was reported meanwhile is newer. */
  putBack(beats: readonly ProgressBeat[]): void {
    for (const beat of beats) {
      if (beat.fraction === null) continue;
      const report = { ...beat, fraction: beat.fraction };
      const newer = this.newest.get(keyOf(beat));
      this.newest.set(keyOf(beat), newer ? mergeProgress(report, newer) : report);
    }
  }
}

function keyOf({ runId, node, generation }: Lease): string {
  return `${runId}:${node}:${generation}`;
}
