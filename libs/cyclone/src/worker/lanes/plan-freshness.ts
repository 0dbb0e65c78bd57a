/** Plans of this many calls, or of this age, are made anew (C1). */
const CALLS = 50;
const AGE_MS = 1_000;

/**
 * When a session should plan its statements anew. Plans of a time when the tables were empty, as on every fresh deploy, are a
 * hundred times slower once they are full; planning again costs less than a busy call.
 */
export class PlanFreshness {
  private calls = 0;
  private renewedAt = -Infinity;

  /** Counts a call that has work to do; true when the plans should be discarded before it. */
  isDue(): boolean {
    const now = performance.now();
    if (++this.calls < CALLS && now - this.renewedAt < AGE_MS) return false;
    this.calls = 0;
    this.renewedAt = now;
    return true;
  }
}
