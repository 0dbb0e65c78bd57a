import type { Act, Intent } from './arbitraries.js';
import { isOpen, type Lease, type ModelRun } from './model-state.js';
import type { Operation, OperationOf } from './operations.js';
import type { ReferenceModel } from './reference-model.js';

/** What is done instead, when there is nobody to do something to. */
const INSTEAD: Partial<Record<Act, Act>> = {
  pause: 'resume',
  resume: 'pause',
  retry: 'fail for good',
  retryAll: 'fail for good',
};

/** Makes an operation of an intent: mostly one that can do something now, each fifth time whatever comes, to be refused. */
export function choose(
  { act, pick }: Intent,
  owner: string,
  model: ReferenceModel,
  leases: readonly Lease[],
): Operation {
  const choice = new Choice(pick, owner, model, leases);
  return choice.of(act) ?? choice.of(INSTEAD[act] ?? 'claim') ?? claim(owner, pick);
}

const claim = (owner: string, number: number): Operation => ({ do: 'flush', owner, done: [], slots: 1 + (number % 4) });

class Choice {
  private readonly wild: boolean;
  private readonly number: number;
  private readonly runs: ModelRun[];
  /** The worker that acts: the one that was asked, or the other one when that one holds nothing. */
  private readonly owner: string;
  /** What it holds now. */
  private readonly mine: Lease[];

  constructor(
    pick: number,
    asked: string,
    model: ReferenceModel,
    private readonly leases: readonly Lease[],
  ) {
    this.wild = pick % 5 === 0;
    this.number = Math.floor(pick / 5);
    this.runs = Object.values(model.runs);
    const held = this.runs.flatMap((run) =>
      Object.values(run.steps)
        .filter((step) => step.owner !== null)
        .map((step): Lease => ({
          runId: run.id,
          node: step.plan.name,
          generation: step.generation,
          owner: step.owner ?? '',
        })),
    );
    const mine = held.filter((lease) => lease.owner === asked);
    this.mine = mine.length > 0 ? mine : held;
    this.owner = this.mine[0]?.owner ?? asked;
  }

  of(act: Act): Operation | null {
    switch (act) {
      case 'claim':
        return claim(this.owner, this.number);
      case 'flush':
        return this.flush();
      case 'complete':
        return this.complete(false);
      case 'abandon':
        return this.complete(true);
      case 'fail':
        return this.settle('failed');
      case 'fail for good':
        return this.settle('failed', true);
      case 'time out':
        return this.settle('timed_out');
      case 'snooze':
        return this.settle('snoozed');
      case 'release':
        return this.settle('released');
      case 'interrupt':
        return this.settle('interrupted');
      case 'heartbeat':
        return this.heartbeat();
      case 'sweep':
        return { do: 'sweep', maxReclaims: [null, 0, 1, 2][this.number % 4]! };
      case 'deadlines':
        return { do: 'deadlines' };
      case 'cancel':
        return this.toRun('cancel', 'running', 'paused');
      case 'pause':
        return this.pause();
      case 'resume':
        return this.toRun('resume', 'paused');
      case 'repair':
        return this.toRun('repair', 'running');
      case 'retry':
        return this.retry();
      case 'retryAll': {
        const run = this.runIn('failed');
        return run ? { do: 'retry', runId: run.id, node: null, additional: this.number % 2 } : null;
      }
    }
  }

  private flush(): Operation | null {
    const { mine, number, owner } = this;
    const stale = this.leases.filter((one) => one.owner === owner && !mine.some((held) => isSame(held, one)));
    const done = [...mine.slice(number % 3, (number % 3) + 2), ...(this.wild ? stale.slice(-1) : [])];
    return done.length > 0 ? { do: 'flush', owner, done, slots: number % 4 } : null;
  }

  private complete(rollback: boolean): Operation | null {
    const lease = this.lease();
    return lease ? { do: 'complete', lease, rollback } : null;
  }

  private settle(outcome: OperationOf<'settle'>['outcome'], permanent = false): Operation | null {
    const lease = this.lease();
    // The backoff of a failure has no jitter here; a snooze has none, and that of an interruption is the engine's.
    const ownDelay = outcome === 'snoozed' || outcome === 'interrupted' ? 9_000 : null;
    const delayMs = [ownDelay, 0, 2_000][this.number % 3]!;
    const maxReclaims = [null, 0, 1, 2][this.number % 4]!;
    return lease ? { do: 'settle', lease, outcome, permanent, delayMs, maxReclaims } : null;
  }

  private heartbeat(): Operation | null {
    const { owner, mine, number } = this;
    if (this.wild) return { do: 'heartbeat', owner, leases: this.leases.slice(-3).map((one) => ({ ...one, owner })) };
    return mine.length > 0 ? { do: 'heartbeat', owner, leases: number % 3 === 0 ? null : mine } : null;
  }

  /** A pause is interesting where something runs, most of all where it is the last thing. */
  private pause(): Operation | null {
    const works = (run: ModelRun) => run.state === 'running' && this.mine.some(({ runId }) => runId === run.id);
    const isLast = (run: ModelRun) =>
      Object.values(run.steps).every((step) => step.state === 'running' || !isOpen(step));
    const working = this.runs.filter(works);
    const ending = working.filter(isLast);
    const run = this.number % 2 ? this.oneOf(ending.length > 0 ? ending : working) : undefined;
    return run ? { do: 'pause', runId: run.id } : this.toRun('pause', 'running');
  }

  private retry(): Operation | null {
    const run = this.runIn('failed');
    const steps = Object.values(run?.steps ?? {});
    const target = this.oneOf(steps.filter((step) => this.wild || (step.state === 'discarded' && !step.contained)));
    return run && target ? { do: 'retry', runId: run.id, node: target.plan.name, additional: this.number % 2 } : null;
  }

  private toRun(what: 'cancel' | 'pause' | 'resume' | 'repair', ...states: string[]): Operation | null {
    const run = this.runIn(...states);
    return run ? { do: what, runId: run.id } : null;
  }

  private runIn(...states: string[]): ModelRun | undefined {
    return this.oneOf(this.wild ? this.runs : this.runs.filter(({ state }) => states.includes(state)));
  }

  private lease(): Lease | undefined {
    if (this.wild) return this.oneOf(this.leases);
    const paused = this.mine.filter(({ runId }) =>
      this.runs.some(({ id, state }) => id === runId && state === 'paused'),
    );
    return this.oneOf(paused.length > 0 ? paused : this.mine);
  }

  private oneOf<T>(all: readonly T[]): T | undefined {
    return all[this.number % Math.max(1, all.length)];
  }
}

const isSame = (a: Lease, b: Lease) => a.runId === b.runId && a.node === b.node && a.generation === b.generation;
