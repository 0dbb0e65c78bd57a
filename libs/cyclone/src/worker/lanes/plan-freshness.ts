/** When a session makes its plans anew. */
export interface PlanPolicy {
  /** After this many calls, and after so many times more each time, up to the largest. */
  readonly firstCalls: number;
  readonly growth: number;
  readonly mostCalls: number;
  /** Before a call when the plans are this old. */
  readonly ageMs: number;
}

/** Of a lane: a call moves hundreds of steps, and planning again costs a fraction of it. */
export const LANE_PLANS: PlanPolicy = { firstCalls: 50, growth: 1, mostCalls: 50, ageMs: 1_000 };

/** Of a connection that completes one step at a time: there planning costs more than the call. */
export const COMPLETION_PLANS: PlanPolicy = { firstCalls: 20, growth: 10, mostCalls: 2_000, ageMs: 60_000 };

/**
 * When a session should plan its statements anew (C1). Plans of a time when the tables were empty, as on every fresh deploy, are a
 * hundred times slower once they are full.
 */
export class PlanFreshness {
  private calls = 0;
  private limit: number;
  private renewedAt = -Infinity;

  constructor(private readonly policy: PlanPolicy) {
    this.limit = policy.firstCalls;
  }

  /** Counts a call that has work to do; true when the plans should be discarded before it. */
  isDue(): boolean {
    const now = performance.now();
    const used = ++this.calls >= this.limit;
    if (!used && now - this.renewedAt < this.policy.ageMs) return false;
    if (used) this.limit = Math.min(this.policy.mostCalls, this.limit * this.policy.growth);
    this.calls = 0;
    this.renewedAt = now;
    return true;
  }
}
