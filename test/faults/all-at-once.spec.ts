import { sleep } from '#cyclone/model/timer.js';
import { fillDisk, makeReadOnly, refuseRole } from './outages.js';
import { LONG_PROGRAMME } from './programme.js';
import { Stage } from './stage.js';
import { tellFigures } from '../support/figures.js';

/** How much of each, in `npm run faults` and in `npm test`. */
const [STEPS, RESTARTS, BACKENDS, FULL_SERVER_MS, READ_ONLY_MS, FULL_DISK_MS] = LONG_PROGRAMME
  ? [250, 5, 200, 25_000, 10_000, 3_000]
  : [25, 1, 10, 500, 500, 500];
/** A step stays in its transaction for so long, so that there is something to interrupt. */
const STEP_MS = 100;
const PHASES = 5;

let stage: Stage;
beforeEach(async () => {
  stage = await Stage.open();
});
afterEach(() => stage.close());

it(`R39: with one attempt each, ${STEPS} steps write ${STEPS} entries through restarts, ended sessions, a full server, a read-only one and a full disk`, async () => {
  const way = await stage.way();
  const application = await stage.application(way.through(stage.urlOf('app')));
  application.inTransaction = () => sleep(STEP_MS);
  await application.worker.start();

  const inTransaction = () =>
    stage.until(
      `select count(*) > 0 from pg_stat_activity where application_name like 'cyclone:%' and query like 'insert%'`,
    );
  const during = async (outage: () => Promise<void>): Promise<void> => {
    await application.enqueue(STEPS / PHASES);
    await inTransaction();
    await outage();
    await stage.endOutage();
    const before = await stage.completed();
    await stage.untilTrue('a step completes', async () => (await stage.completed()) > before);
  };

  await during(async () => {
    for (let restart = 0; restart < RESTARTS; restart++) {
      await inTransaction();
      await stage.server.restart(restart % 2 === 0 ? 'immediate' : 'fast');
    }
  });
  await during(async () => {
    for (let ended = 0; ended < BACKENDS;) {
      await inTransaction();
      ended += await stage.cut();
    }
  });
  const phase = (begin: (of: Stage) => Promise<void>, forMs: number) =>
    during(async () => {
      await begin(stage);
      await sleep(forMs); // the length of the outage is what this is about
    });
  await phase(refuseRole, FULL_SERVER_MS);
  await phase(makeReadOnly, READ_ONLY_MS);
  await phase(fillDisk, FULL_DISK_MS);

  await stage.until(`select count(*) = ${STEPS} and bool_and(finished_at is not null) from cyclone_runs`);
  await application.worker.stop();
  expect(await stage.problems()).toEqual([]);
  const outcome = await stage.sql(
    `select count(*)::int as completed, sum(s.attempt - 1)::int as charged, (select count(*)::int from ledger) as entries
       from cyclone_steps s where s.state = 'completed'`,
  );
  tellFigures('all-at-once', {
    restarts: RESTARTS,
    backends: BACKENDS,
    fullServerMs: FULL_SERVER_MS,
    readOnlyMs: READ_ONLY_MS,
    fullDiskMs: FULL_DISK_MS,
    ...outcome[0],
  });
  expect(outcome).toEqual([{ completed: STEPS, charged: 0, entries: STEPS }]);
});
