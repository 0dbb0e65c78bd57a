import fc from 'fast-check';
import { intents, pauses, plans, type Intent } from './arbitraries.js';
import { choose } from './choose.js';
import type { RunPlan } from './model-state.js';
import type { Play } from './play.js';

type Commands = fc.AsyncCommand<Play, Play, true>;

/** Somebody does something, mostly to what is there at the moment. */
class DoSomething implements Commands {
  constructor(
    private readonly worker: number,
    private readonly intent: Intent,
  ) {}

  check(): Promise<boolean> {
    return Promise.resolve(true);
  }

  async run(play: Play): Promise<void> {
    const operation = choose(this.intent, `w${this.worker}`, play.model, play.leases);
    await play.perform(operation, play.world.sessions[this.worker]);
  }

  toString(): string {
    return `w${this.worker} ${this.intent.act} ${this.intent.pick}`;
  }
}

/** Nothing happens for a while, and then somebody looks which deadlines have passed, or which leases, with this many reclaims at most. */
class TimePasses implements Commands {
  constructor(
    private readonly ms: number,
    private readonly then: 'deadlines' | 'nothing' | 0 | 1 | null,
  ) {}

  check(): Promise<boolean> {
    return Promise.resolve(true);
  }

  async run(play: Play): Promise<void> {
    await play.passTime(this.ms);
    if (this.then === 'deadlines') await play.perform({ do: 'deadlines' });
    else if (this.then !== 'nothing') await play.perform({ do: 'sweep', maxReclaims: this.then });
  }

  toString(): string {
    return `${this.ms} ms, then ${this.then}`;
  }
}

class Submit implements Commands {
  constructor(private readonly plan: RunPlan) {}

  check(play: Play): Promise<boolean> {
    return Promise.resolve(Object.keys(play.model.runs).length < 5);
  }

  run(play: Play): Promise<void> {
    return play.submit(this.plan);
  }

  toString(): string {
    return `submit of ${this.plan.nodes.length}`;
  }
}

class RetryExhausted implements Commands {
  constructor(private readonly reason: string) {}

  check(): Promise<boolean> {
    return Promise.resolve(true);
  }

  run(play: Play): Promise<void> {
    return play.retryExhausted(this.reason);
  }

  toString(): string {
    return `retryExhausted ${this.reason}`;
  }
}

const some = (count: number, arbitrary: fc.Arbitrary<Commands>): fc.Arbitrary<Commands>[] =>
  Array(count).fill(arbitrary);

const doings = fc.tuple(fc.nat(1), intents).map(([worker, intent]) => new DoSomething(worker, intent));
const looks = fc.constantFrom(
  'deadlines' as const,
  'deadlines' as const,
  'nothing' as const,
  0 as const,
  1 as const,
  null,
);
const passings = fc.tuple(pauses, looks).map(([ms, then]) => new TimePasses(ms, then));
const submits = plans.map((plan) => new Submit(plan));
const reasons = fc.constantFrom('deadline', 'deadline', 'deadline', 'retryable', 'permanent', 'reclaim_limit');
const requeues = reasons.map((reason) => new RetryExhausted(reason));

export const commands = fc.commands<Play, Play, true>(
  [...some(12, doings), ...some(3, passings), submits, ...some(2, requeues)],
  { maxCommands: 60, size: 'max' },
);
