import { sleep } from '#cyclone/model/timer.js';
import { chain, dropTemplate, Fixture, job } from '../worker/fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

const TABLES = ['cyclone_runs', 'cyclone_steps', 'cyclone_deps'];
const RUNS = 1_500;
const STEPS_OF_A_RUN = 3;
/** It is about 25; housekeeping reads more on a slow machine. A step that read all others would read thousands. */
const MOST_READS = 100;

/** How many rows of the engine's tables were read, and how many versions of steps were written. */
async function work(): Promise<{ reads: number; writes: number }> {
  const [row] = await fixture.rows<{ reads: number; writes: number }>(
    `select sum(idx_tup_fetch + seq_tup_read)::float8 as reads,
            sum(n_tup_upd) filter (where relname = 'cyclone_steps')::float8 as writes
       from pg_stat_user_tables where relname = any($1)`,
    [TABLES],
  );
  return row ?? { reads: 0, writes: 0 };
}

/**
 * Measured: a lane that had idled on empty tables, as after every fresh deploy, drained chains at 277 steps/s instead of 30,000: its
 * plans were those of empty tables, and each completion read all the others. The time depends on the machine, the rows read do not.
 */
describe('a worker whose plans were made on empty tables (C1)', () => {
  it('reads no more rows for each step of a large backlog than for a small one', async () => {
    fixture = await Fixture.open();
    for (const table of TABLES) await fixture.rows(`vacuum analyze ${table}`);
    await fixture.worker({ work: () => 1 }, { queues: { default: 200 } }).start();
    for (let i = 0; i < 20; i++) {
      await fixture.submitOne(job('work'));
      await fixture.idle();
    }
    const before = await work();
    const completed = fixture.stepEvents('completed').length + RUNS * STEPS_OF_A_RUN;
    await fixture.submit(...Array.from({ length: RUNS }, () => chain(['work', 'work', 'work'])));
    while (fixture.stepEvents('completed').length < completed) await sleep(10); // asking the tables would count as reads
    // Sessions report what they have done a moment later.
    await fixture.until(
      `select sum(n_tup_upd) >= $1::bigint from pg_stat_user_tables where relname = 'cyclone_steps'`,
      [before.writes + RUNS * STEPS_OF_A_RUN * 2 - RUNS],
    );
    const after = await work();
    expect((after.reads - before.reads) / (RUNS * STEPS_OF_A_RUN)).toBeLessThan(MOST_READS);
  });
});
