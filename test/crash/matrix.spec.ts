import type { TestDatabase } from '../support/postgres.js';
import { createCrashTemplate, CrashSlot } from '../support/crash-slot.js';
import { KILLED, TERMINATED, UNANSWERED, type Incident } from './incidents.js';
import { LONG_PROGRAMME } from './programme.js';
import { runCell } from './run-cell.js';
import { SCENARIOS, type Scenario } from './scenarios.js';

/** So many cells are played at the same time, each in a database of its own: they mostly wait for leases to expire. */
const SLOTS = 3;
/** How many cells are played ahead of the one whose test has its turn. */
const AHEAD = 2 * SLOTS;

/** What happens to a call that writes nothing is the same whether the server is at work on it or done with it. */
const NEEDS_A_POINT = new Set([
  'killed in flight, and the server rolls back',
  'connection cut while the server is at work',
]);

interface Cell {
  readonly name: string;
  readonly index: number;
  readonly scenario: Scenario;
  readonly incident: Incident;
}

const cells: Cell[] = SCENARIOS.filter(({ long }) => LONG_PROGRAMME || !long)
  .flatMap((scenario) =>
    [...KILLED, ...TERMINATED, ...UNANSWERED]
      .filter(({ name }) => scenario.point !== undefined || !NEEDS_A_POINT.has(name))
      .map((incident) => ({ name: `${scenario.name}: ${incident.name}`, scenario, incident })),
  )
  .map((cell, index) => ({ ...cell, index }));

let template: TestDatabase;
let slots: CrashSlot[] = [];
let idle: CrashSlot[] = [];
const waiting: (() => void)[] = [];
const results = new Map<number, Promise<string[]>>();

beforeAll(async () => {
  template = await createCrashTemplate();
  slots = await Promise.all(Array.from({ length: SLOTS }, () => CrashSlot.open(template)));
  idle = [...slots];
});

afterAll(async () => {
  await Promise.allSettled(results.values());
  await Promise.all(slots.map((slot) => slot.close()));
  await template.drop();
});

/** Plays a cell as soon as a slot is idle, unless it was played already. */
function play(cell: Cell | undefined): void {
  if (!cell || results.has(cell.index)) return;
  const result = playInTurn(cell);
  result.catch(() => undefined); // its test hears of it
  results.set(cell.index, result);
}

async function playInTurn({ scenario, incident }: Cell): Promise<string[]> {
  while (idle.length === 0) await new Promise<void>((resolve) => waiting.push(resolve));
  const slot = idle.pop() as CrashSlot;
  try {
    return await runCell(slot, scenario, incident);
  } finally {
    idle.push(slot);
    waiting.shift()?.();
  }
}

describe('whatever happens at a call, the work is done, and each step once (R12, R13, C4)', () => {
  it.each(cells)('$name', async ({ index }) => {
    for (let ahead = 0; ahead <= AHEAD; ahead++) play(cells[index + ahead]);
    expect(await results.get(index)).toEqual([]);
  });
});
