import type { Outage, Scene } from './outages.js';
import { ENTRIES } from './workflow.js';

/** Orders that are there before an outage begins. */
const ORDERS = 30;

/** What came of an outage. */
export interface Played {
  /** Everything that is not as it should be. */
  readonly problems: readonly string[];
  /** From its end to the next completion of a step. */
  readonly recoveredMs: number;
  /** Steps that were put back, uncharged. */
  readonly interrupted: number;
}

/**
 * Lets an application live through an outage: orders keep coming, an operator keeps looking. Afterwards everything has to be done, once,
 * without a charged attempt.
 */
export async function play(outage: Outage, scene: Scene): Promise<Played> {
  const { stage, application } = scene;
  await application.order(ORDERS);
  application.keepBusy();
  await application.worker.start();
  await stage.untilTrue('the work has begun', async () => (await stage.completed()) > 5);

  const failedBefore = application.failedCalls;
  await outage.begin(scene);
  if (outage.lasts) await outage.lasts(scene);
  else if (!outage.harmless) {
    await stage.untilTrue('calls fail', () => application.failedCalls >= failedBefore + 3);
  }
  const { health, doctor } = outage;
  if (health)
    await stage.untilTrue(`health says ${health}`, () => health.test(application.worker.health().problems.join()));
  if (doctor) await stage.untilTrue(`doctor says ${doctor}`, async () => doctor.test(await application.examine()));
  await stage.endOutage();
  const endedAt = performance.now();
  const before = await stage.completed();
  await stage.untilTrue('a step completes', async () => (await stage.completed()) > before);
  const recoveredMs = Math.round(performance.now() - endedAt);

  await application.rest();
  await stage.until(`select count(*) = ${application.orders} and bool_and(finished_at is not null) from cyclone_runs`);
  await stage.untilTrue('the worker is healthy again', () => application.worker.health().healthy);
  await application.worker.stop();
  const problems = await stage.problems();
  const [counts] = await stage.sql<{ entries: number; interrupted: number }>(
    `select (select count(*)::int from ledger) as entries,
            (select count(*)::int from cyclone_attempts where outcome = 'interrupted') as interrupted`,
  );
  const { entries = 0, interrupted = 0 } = counts ?? {};
  if (entries !== application.orders * ENTRIES) problems.push(`${entries} entries for ${application.orders} orders`);
  problems.push(...application.log.filter((line) => line.includes('RAW ERROR')));
  return { problems, recoveredMs, interrupted };
}
