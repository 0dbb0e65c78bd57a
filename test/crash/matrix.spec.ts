import type { TestDatabase } from '../support/postgres.js';
import { createCrashTemplate, CrashSlot } from '../support/crash-slot.js';
import { KILLED, TERMINATED, UNANSWERED, type Incident } from './incidents.js';
import { LONG_PROGRAMME } from './programme.js';
import { runCell } from './run-cell.js';
import { SCENARIOS, type Scenario } from './scenarios.js';

/** So many cells are played at the same time, each in a database of its own: they mostly wait for leases to expire. */
const SLOTS = 3;

interface Planned {
  readonly name: string;
  readonly scenario: Scenario;
  readonly incident: Incident;
  readonly result: Promise<string[]>;
  play(slot: CrashSlot): Promise<void>;
}

/** What happens to a call that writes nothing is the same whether the server is at work on it or done with it. */
const NEEDS_A_POINT = new Set([
  'killed in flight, and the server rolls back',
  'connection cut while the server is at work',
]);

const cells = SCENARIOS.flatMap((scenario) =>
  [...KILLED, ...TERMINATED, ...UNANSWERED]
    .filter(({ name }) => scenario.point !== undefined || !NEEDS_A_POINT.has(name))
    .map((incident) => plan(scenario, incident)),
);

function plan(scenario: Scenario, incident: Incident): Planned {
  let settle: { resolve(problems: string[]): void; reject(error: unknown): void } | undefined;
  const result = new Promise<string[]>((resolve, reject) => (settle = { resolve, reject }));
  result.catch(() => undefined); // its test hears of it
  return {
    name: `${scenario.name}: ${incident.name}`,
    scenario,
    incident,
    result,
    play: (slot) =>
      runCell(slot, scenario, incident).then(
        (problems) => settle?.resolve(problems),
        (error: unknown) => settle?.reject(error),
      ),
  };
}

const queue = cells.filter(({ scenario }) => LONG_PROGRAMME || !scenario.long);

let template: TestDatabase;
let slots: CrashSlot[] = [];
let playing: Promise<void[]>;

beforeAll(async () => {
  template = await createCrashTemplate();
  slots = await Promise.all(Array.from({ length: Math.min(SLOTS, queue.length) }, () => CrashSlot.open(template)));
  const left = [...queue];
  playing = Promise.all(
    slots.map(async (slot) => {
      for (let cell = left.shift(); cell; cell = left.shift()) await cell.play(slot);
    }),
  );
});

afterAll(async () => {
  await playing;
  await Promise.all(slots.map((slot) => slot.close()));
  await template.drop();
});

describe('whatever happens at a call, the work is done, and each step once (R12, R13, C4)', () => {
  it.each(queue)('$name', async ({ result }) => {
    expect(await result).toEqual([]);
  });
});
