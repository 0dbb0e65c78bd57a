import fc from 'fast-check';
import { intents, pauses, plans } from './arbitraries.js';
import { choose } from './choose.js';
import { commands } from './commands.js';
import type { RunPlan } from './model-state.js';
import { Play } from './play.js';
import { ReferenceModel } from './reference-model.js';
import { RowCounts } from './rows.js';
import { tellFigures } from '../support/figures.js';
import { World } from './world.js';

// One command at a time, engine and model have to agree exactly, on every column that a rule speaks of. Several at once, some order of
// them has to give what the tables hold, what each was told and the path of every step. There the model leaves open only what depends on
// locks: which steps a claim or a sweep skips, and so in which order a claim takes them.

/** The long programme is `npm run model`. A failure prints its seed: CYCLONE_MODEL_SEED=… plays it again. CYCLONE_MODEL_COUNTS=1 prints the counts. */
const IS_LONG = process.env.CYCLONE_MODEL === 'long';
const SEED = process.env.CYCLONE_MODEL_SEED ? { seed: Number(process.env.CYCLONE_MODEL_SEED) } : {};
const PROGRAMME = IS_LONG ? { sequences: 2000, storms: 1000, atLeast: 50 } : { sequences: 50, storms: 30, atLeast: 1 };
/** Sequences that may follow when a rare row is still missing. */
const EXTRA = 10;
const MAX_EXTRAS = 30;
/** How long a failure is made smaller. */
const SHRINKING_MS = 60_000;
const NOON = Date.UTC(2030, 0, 1, 12);
const HOURS = 4 * 3_600_000;

describe('the engine beside a model of its rules', () => {
  const counts = new RowCounts();
  let world: World;
  let failedAt: number | undefined;
  beforeAll(async () => {
    world = await World.create(4);
  });
  afterAll(() => world.database.drop());

  async function play(runs: readonly RunPlan[], act: (play: Play) => Promise<void>): Promise<void> {
    if (failedAt !== undefined && Date.now() - failedAt > SHRINKING_MS) return;
    const one = new Play(world, new ReferenceModel(NOON), counts);
    try {
      await world.setStorm(false);
      await one.start(runs);
      await act(one);
      await world.setStorm(false);
      await one.settle();
    } catch (error) {
      failedAt ??= Date.now();
      throw error;
    }
  }

  const someRuns = (maxLength: number) => fc.array(plans, { minLength: 1, maxLength });

  const sequences = fc.asyncProperty(someRuns(3), commands, (runs, sequence) =>
    play(runs, (one) => fc.asyncModelRun(() => ({ model: one, real: one }), sequence)),
  );

  const togethers = fc.array(intents, { minLength: 2, maxLength: 4 });
  const rounds = fc.oneof({ weight: 3, arbitrary: togethers }, { weight: 1, arbitrary: pauses });
  const storms = fc.asyncProperty(
    someRuns(2),
    fc.array(rounds, { minLength: 5, maxLength: 25, size: 'max' }),
    (runs, all) =>
      play(runs, async (one) => {
        await world.setStorm(true);
        for (const round of all) {
          if (typeof round === 'number') await one.passTime(round);
          else await one.performAtOnce(round.map((intent, i) => choose(intent, `w${i % 2}`, one.model, one.leases)));
        }
      }),
  );

  it(
    'does what the model does, after each of a sequence of commands, tells of each change, and can always be brought to an end (R2, R10-R28, R33, F21)',
    () => fc.assert(sequences, { numRuns: PROGRAMME.sequences, ...SEED }),
    HOURS,
  );

  it(
    'does what some order of them does, when two workers and several operators act at once (R12, R24, C2)',
    () => fc.assert(storms, { numRuns: PROGRAMME.storms, ...SEED }),
    HOURS,
  );

  it(
    `has taken every row of the table whose operations exist, at least ${PROGRAMME.atLeast} times (R2)`,
    async () => {
      for (let i = 0; i < MAX_EXTRAS && counts.missing(PROGRAMME.atLeast).length > 0; i++) {
        await fc.assert(sequences, { numRuns: EXTRA });
      }
      if (IS_LONG || process.env.CYCLONE_MODEL_COUNTS)
        process.stdout.write(`\nHow often each row was taken:\n${String(counts)}\n`);
      tellFigures('model', { sequences: PROGRAMME.sequences, storms: PROGRAMME.storms, ...counts.summary() });
      expect(counts.surprising()).toEqual([]);
      expect(counts.missing(PROGRAMME.atLeast)).toEqual([]);
    },
    HOURS,
  );
});
