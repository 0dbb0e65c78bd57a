import { tellFigures } from '../support/figures.js';
import { LONG_PROGRAMME, note } from './programme.js';
import { OUTAGES } from './outages.js';
import { play } from './play.js';
import { Stage } from './stage.js';

let stage: Stage;
beforeEach(async () => {
  stage = await Stage.open();
});
afterEach(() => stage.close());

const played = OUTAGES.filter(({ quick }) => LONG_PROGRAMME || quick);

const outages: { name: string; recoveredMs: number; interrupted: number; problems: number }[] = [];
afterAll(() => tellFigures('outages', { outages }));

describe('a worker, a client and an operator live through (R21, R39, R41)', () => {
  it.each(played.map((outage) => [outage.name, outage] as const))('%s', async (name, outage) => {
    await outage.prepare?.(stage);
    const way = await stage.way();
    const url = stage.urlOf('app');
    const taken = (await outage.url?.(stage)) ?? (outage.elsewhere ? url : way.through(url));
    const application = await stage.application(taken, outage.options);
    const { problems, recoveredMs, interrupted } = await play(outage, { stage, application, way });
    outages.push({ name, recoveredMs, interrupted, problems: problems.length });
    expect(problems).toEqual([]);
    note(name, `${recoveredMs} ms to the next completion, ${interrupted} steps interrupted`);
    if (LONG_PROGRAMME) expect(recoveredMs).toBeLessThan(outage.recoversWithinMs * 3);
  });
});
