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
    if (operation) await play.perform(operation, play.world.sessions[this.worker]);
  }

  toString(): string {
    return `w${this.worker} ${this.intent.act} ${this.intent.pick}`;
  }
}

/** Nothing happens for a while, and then somebody looks whose lease or deadline has passed. */
class TimePasses implements Commands {
  constructor(
    private readonly ms: number,
    private readonly then: 'sweep' | 'deadlines' | null,
  ) {}

  check(): Promise<boolean> {
    return Promise.resolve(true);
  }

  async run(play: Play): Promise<void> {
    await play.passTime(this.ms);
    if (this.then === 'sweep') await play.perform({ do: 'sweep', maxReclaims: 1 });
    if (this.then === 'deadlines') await play.perform({ do: 'deadlines' });
  }

  toString(): string {
    return `${this.ms} ms and ${this.then}`;
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

export const commands = fc.commands<Play, Play, true>(
  [
    ...some(
      12,
      fc.tuple(fc.nat(1), intents).map(([worker, intent]) => new DoSomething(worker, intent)),
    ),
    ...some(
      2,
      fc.tuple(pauses, fc.constantFrom('sweep', 'deadlines', null)).map(([ms, then]) => new TimePasses(ms, then)),
    ),
    plans.map((plan) => new Submit(plan)),
    fc.constantFrom('retryable', 'permanent', 'deadline', 'reclaim_limit').map((reason) => new RetryExhausted(reason)),
  ],
  { maxCommands: 60, size: 'max' },
);
