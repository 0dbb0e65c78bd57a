import { RUN_STATES, STEP_STATES, TERMINAL_RUN_STATES, TERMINAL_STEP_STATES } from './states.js';
import { COMPOSITES, isAllowed, TRANSITIONS, type Entity } from './transitions.js';

const STATES = { step: STEP_STATES, run: RUN_STATES } as const;
const rowsOf = (entity: Entity) => TRANSITIONS.filter((row) => row.entity === entity);
const statesIn = (entity: Entity): string[] => [
  ...new Set<string>([rowsOf(entity).flatMap((row) => row.from), rowsOf(entity).map((row) => row.to)].flat()),
];

describe('the state machine (R2)', () => {
  it.each(['step', 'run'] as const)('lists exactly the states of a %s', (entity) => {
    expect(statesIn(entity).toSorted()).toEqual(['new', ...STATES[entity]].toSorted());
  });

  it.each(['step', 'run'] as const)('reaches every state of a %s from its insert', (entity) => {
    const reached = new Set(['new']);
    for (let size = 0; size !== reached.size;) {
      size = reached.size;
      for (const row of TRANSITIONS) {
        if (row.entity === entity && row.from.some((from) => reached.has(from))) reached.add(row.to);
      }
    }
    expect([...reached].toSorted()).toEqual(['new', ...STATES[entity]].toSorted());
  });

  it('never leaves completed, and leaves the other ends by a retry only', () => {
    const leaving = (ends: readonly string[]) =>
      TRANSITIONS.filter((row) => row.from.some((from) => ends.includes(from)));
    expect(leaving(['completed'])).toEqual([]);
    for (const row of leaving([...TERMINAL_STEP_STATES, ...TERMINAL_RUN_STATES])) expect(row.trigger).toMatch(/retry/);
  });

  it('allows what it lists, and its composites', () => {
    expect(isAllowed('step', 'available', 'running')).toBe(true);
    expect(isAllowed('step', 'pending', 'running')).toBe(true);
    expect(isAllowed('run', 'new', 'running')).toBe(true);
  });

  it.each([
    ['step', 'completed', 'available'],
    ['step', 'new', 'running'],
    ['step', 'discarded', 'running'],
    ['step', 'pending', 'paused'],
    ['step', 'available', 'completed'],
    ['run', 'completed', 'running'],
    ['run', 'failed', 'completed'],
    ['run', 'new', 'paused'],
    ['run', 'available', 'running'],
  ] as const)('refuses a %s from %s to %s', (entity, from, to) => expect(isAllowed(entity, from, to)).toBe(false));

  it('has composites made of its own rows only', () => {
    for (const { entity, from, via, to } of COMPOSITES) {
      expect(isAllowed(entity, from, via)).toBe(true);
      expect(isAllowed(entity, via, to)).toBe(true);
    }
  });
});
