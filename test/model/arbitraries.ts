import fc from 'fast-check';
import type { NodePlan, RunPlan } from './model-state.js';

/** More of what is rare otherwise. */
const TYPES = ['step', 'step', 'step', 'step', 'action', 'timer', 'signal', 'child'] as const;

const node = fc.record({
  type: fc.constantFrom(...TYPES),
  after: fc.array(fc.nat(5), { maxLength: 3 }),
  gathers: fc.boolean(),
  large: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
  onDepFailure: fc.constantFrom('fail_run' as const, 'cancel_branch' as const, 'cancel_branch' as const),
  maxAttempts: fc.integer({ min: 1, max: 3 }),
  timeoutMs: fc.constantFrom(null, null, 10_000, 45_000),
  waitMs: fc.constantFrom(5_000, 3_600_000),
  priority: fc.integer({ min: 0, max: 1 }),
});

/** Graphs without a cycle: nodes depend on earlier ones only. Half of the waits before something are work, because nobody ends waits. */
const graphOf = (maxLength: number) =>
  fc.array(node, { minLength: 1, maxLength }).map((all) =>
    all.map(({ after, gathers, large, type, ...rest }, i): NodePlan => {
      const before = [...new Set(after.filter((other) => other < i))].map((other) => `n${other}`);
      const works = gathers && all.some((later, j) => j > i && later.after.includes(i));
      return {
        ...rest,
        type: works ? 'step' : type,
        name: `n${i}`,
        after: before,
        gathers: gathers && before.length > 0,
        large: large && (works || type === 'step'),
      };
    }),
  );

const nodes = fc.oneof(graphOf(2), graphOf(6), graphOf(6));

export const plans: fc.Arbitrary<RunPlan> = fc.record({
  nodes,
  deadlineMs: fc.constantFrom(null, 20_000, 20_000, 60_000),
  delayMs: fc.constantFrom(0, 0, 0, 3_000),
});

/** What somebody wants to do; to whom is found out when it is done. */
export const ACTS = [
  'claim',
  'flush',
  'complete',
  'abandon',
  'fail',
  'fail for good',
  'time out',
  'snooze',
  'release',
  'interrupt',
  'heartbeat',
  'sweep',
  'deadlines',
  'cancel',
  'pause',
  'resume',
  'retry',
  'retryAll',
  'repair',
] as const;

export type Act = (typeof ACTS)[number];

export interface Intent {
  readonly act: Act;
  readonly pick: number;
}

const WEIGHTS: Partial<Record<Act, number>> = {
  claim: 6,
  flush: 5,
  complete: 2,
  fail: 2,
  sweep: 2,
  snooze: 2,
  release: 2,
  interrupt: 3,
  deadlines: 2,
  pause: 3,
  resume: 3,
  retry: 4,
  retryAll: 3,
};

export const intents: fc.Arbitrary<Intent> = fc.record({
  act: fc.oneof(...ACTS.map((act) => ({ weight: WEIGHTS[act] ?? 1, arbitrary: fc.constant(act) }))),
  pick: fc.nat(10_000),
});

/** How long nothing happens; a lease of the model is 30 s. */
export const pauses = fc.constantFrom(1_000, 5_000, 10_000, 30_000, 31_000, 60_000);
