import type { Intent } from './arbitraries.js';
import type { Lease, ModelRun } from './model-state.js';
import type { Operation } from './operations.js';
import type { ReferenceModel } from './reference-model.js';

/**
 * Makes an operation of an intent: mostly one that can do something now, each fifth time whatever comes, to be refused.
 * Null when there is nobody to do it to.
 */
export function choose(
  { act, pick }: Intent,
  owner: string,
  model: ReferenceModel,
  leases: readonly Lease[],
): Operation | null {
  const wild = pick % 5 === 0;
  const number = Math.floor(pick / 5);
  const runs = Object.values(model.runs);
  const oneOf = <T>(all: readonly T[]): T | undefined => all[number % Math.max(1, all.length)];
  const runIn = (...states: string[]): ModelRun | undefined =>
    oneOf(wild ? runs : runs.filter(({ state }) => states.includes(state)));
  const mine = runs.flatMap((run) =>
    Object.values(run.steps)
      .filter((step) => step.state === 'running' && step.owner === owner)
      .map((step): Lease => ({ runId: run.id, node: step.plan.name, generation: step.generation, owner })),
  );
  const lease = oneOf(wild ? leases : mine);
  const settle = (outcome: 'failed' | 'timed_out' | 'snoozed' | 'released', permanent = false): Operation | null =>
    lease
      ? {
          do: 'settle',
          lease,
          outcome,
          permanent,
          delayMs: [outcome === 'snoozed' ? 9_000 : null, 0, 2_000][number % 3]!,
        }
      : null;
  const toRun = (what: 'cancel' | 'pause' | 'resume' | 'repair', ...states: string[]): Operation | null => {
    const run = runIn(...states);
    return run ? { do: what, runId: run.id } : null;
  };

  switch (act) {
    case 'claim':
      return { do: 'flush', owner, done: [], slots: 1 + (number % 4) };
    case 'flush': {
      const stale = leases.filter(
        (one) => one.owner === owner && !mine.some((held) => held.runId === one.runId && held.node === one.node),
      );
      const done = [...mine.slice(number % 3, (number % 3) + 2), ...(wild ? stale.slice(-1) : [])];
      return done.length > 0 ? { do: 'flush', owner, done, slots: number % 4 } : null;
    }
    case 'complete':
    case 'abandon':
      return lease ? { do: 'complete', lease, rollback: act === 'abandon' } : null;
    case 'fail':
      return settle('failed');
    case 'fail for good':
      return settle('failed', true);
    case 'time out':
      return settle('timed_out');
    case 'snooze':
      return settle('snoozed');
    case 'release':
      return settle('released');
    case 'heartbeat':
      return { do: 'heartbeat', owner, leases: wild ? leases.slice(-3).map((one) => ({ ...one, owner })) : mine };
    case 'sweep':
      return { do: 'sweep', maxReclaims: [null, 0, 1, 2][number % 4]! };
    case 'deadlines':
      return { do: 'deadlines' };
    case 'cancel':
      return number % 2 ? toRun('cancel', 'running', 'paused') : null;
    case 'pause':
      return toRun('pause', 'running');
    case 'resume':
      return toRun('resume', 'paused');
    case 'repair':
      return toRun('repair', 'running');
    case 'retry': {
      const run = runIn('failed');
      const targets = run
        ? Object.values(run.steps).filter((step) => wild || (step.state === 'discarded' && !step.contained))
        : [];
      const target = oneOf(targets);
      return run && target ? { do: 'retry', runId: run.id, node: target.plan.name, additional: number % 2 } : null;
    }
    case 'retryAll': {
      const run = runIn('failed');
      return run ? { do: 'retry', runId: run.id, node: null, additional: number % 2 } : null;
    }
  }
}
