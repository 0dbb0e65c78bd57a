import fc from 'fast-check';
import { intents, pauses, plans } from './arbitraries.js';
import { choose } from './choose.js';
import { commands } from './commands.js';
import { Play } from './play.js';
import { ReferenceModel } from './reference-model.js';
import { RowCounts } from './rows.js';
import { World } from './world.js';

/** The long programme is `npm run model`. A failure prints its seed and path: CYCLONE_MODEL_SEED plays it again. */
const IS_LONG = process.env.CYCLONE_MODEL === 'long';
const SEED = process.env.CYCLONE_MODEL_SEED ? { seed: Number(process.env.CYCLONE_MODEL_SEED) } : {};
const PROGRAMME = IS_LONG
  ? { sequences: Number(process.env.SEQ ?? 2000), storms: Number(process.env.STORM ?? 1000), atLeast: 50 }
  : { sequences: 50, storms: 30, atLeast: 1 };
const QUICK = { endOnFailure: true };
const NOON = Date.UTC(2030, 0, 1, 12);

describe('the engine beside a model of its rules', () => {
  const counts = new RowCounts();
  let world: World;
  beforeAll(async () => {
    world = await World.create(4);
  });
  afterAll(() => world.database.drop());

  it('does what the model does, after each of a sequence of commands, and can always be brought to an end (R2, R10-R28)', async () => {
    const property = fc.asyncProperty(
      fc.array(plans, { minLength: 1, maxLength: 3 }),
      commands,
      async (runs, sequence) => {
        const play = new Play(world, new ReferenceModel(NOON), counts);
        await play.start(runs);
        await fc.asyncModelRun(() => ({ model: play, real: play }), sequence);
        await play.settle();
      },
    );
    await fc.assert(property, { numRuns: PROGRAMME.sequences, ...SEED, ...QUICK });
  }, 7_200_000);

  it('does what some order of them does, when two workers and several operators act at once (R12, R24, C2)', async () => {
    const rounds = fc.array(
      fc.oneof(
        { weight: 3, arbitrary: fc.array(intents, { minLength: 2, maxLength: 4 }) },
        { weight: 1, arbitrary: pauses },
      ),
      { minLength: 5, maxLength: 25, size: 'max' },
    );
    await world.setJitter(true);
    const property = fc.asyncProperty(fc.array(plans, { minLength: 1, maxLength: 3 }), rounds, async (runs, all) => {
      const play = new Play(world, new ReferenceModel(NOON), counts);
      await play.start(runs);
      for (const round of all) {
        if (typeof round === 'number') {
          await play.passTime(round);
          continue;
        }
        await play.performAtOnce(round.map((intent, i) => choose(intent, `w${i % 2}`, play.model, play.leases)));
      }
      await play.settle();
    });
    await fc.assert(property, { numRuns: PROGRAMME.storms, ...SEED, ...QUICK }).finally(() => world.setJitter(false));
  }, 7_200_000);

  it(`has taken every row of the table whose operations exist at least ${PROGRAMME.atLeast} times (R2)`, () => {
    if (IS_LONG || process.env.CYCLONE_MODEL_COUNTS)
      process.stdout.write(`\nHow often each row was taken:\n${String(counts)}\n`);
    expect(counts.surprising()).toEqual([]);
    expect(counts.missing(PROGRAMME.atLeast)).toEqual([]);
  });
});
