import { setTimeout as delay } from 'node:timers/promises';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { AppModule } from '../app.module.js';
import { OrdersService } from '../orders/orders.service.js';
import type { PlaceOrderDto } from '../orders/place-order.dto.js';
import { Settings } from '../settings.js';
import { openDemoDatabase } from './database.js';
import type { DemoOptions } from './options.js';
import { ProgressBar } from './progress-bar.js';
import { countReclaims, takeTally, type Tally } from './tally.js';
import { WorkerFleet } from './worker-fleet.js';

const WORKERS = 2;
/** Few slots, slow charges and short leases: so a kill always hits work, and the others soon take it over, however often. */
const WORKER_OPTIONS = { queues: { default: 5 }, leaseTtl: '2s', pollInterval: '500ms', maxReclaims: false } as const;
const CARD_LATENCY_MS = 250;

const SUBMITTERS = 8;
const LOOK_MS = 100;

/** Submits the orders, lets the workers do them and kills workers meanwhile. Null when it was interrupted. */
export async function runDemo(
  orders: PlaceOrderDto[],
  { kills, patience }: Pick<DemoOptions, 'kills' | 'patience'>,
  interruption: AbortSignal,
): Promise<Tally | null> {
  console.log(
    `${orders.length} orders, ${WORKERS} worker processes, up to ${kills} times kill -9. Starting PostgreSQL …`,
  );
  const { databaseUrl, schema, remove } = await openDemoDatabase(process.env.DATABASE_URL || undefined);
  try {
    const settings = { databaseUrl, schema, cardLatency: CARD_LATENCY_MS };
    // This process submits and looks on; it does no work itself.
    const app = await NestFactory.createApplicationContext(
      AppModule.forRoot(new Settings({ ...settings, worker: false })),
      { logger: ['error', 'fatal'], abortOnError: false },
    );
    const fleet = new WorkerFleet(WORKERS, settings, WORKER_OPTIONS);
    const over = new AbortController();
    const end = AbortSignal.any([interruption, over.signal]);
    const accepted = new Set<string>();
    try {
      fleet.start();
      const submits = submit(app, orders, accepted, end);
      submits.catch(() => over.abort());
      await watch(app, { total: orders.length, kills, patience }, fleet, end).finally(() => over.abort());
      await submits;
      await fleet.stop();
      return interruption.aborted ? null : await takeTally(app.get(DataSource), orders, accepted, fleet.kills);
    } finally {
      await fleet.stop();
      await app.close();
    }
  } finally {
    await remove();
  }
}

/** @param accepted gets the ids of the orders that were accepted */
async function submit(
  app: INestApplicationContext,
  orders: PlaceOrderDto[],
  accepted: Set<string>,
  end: AbortSignal,
): Promise<void> {
  const service = app.get(OrdersService);
  const rest = orders.values();
  const submitter = async () => {
    for (const order of rest) {
      if (end.aborted) return;
      await service.place(order);
      accepted.add(order.id);
    }
  };
  await Promise.all(Array.from({ length: SUBMITTERS }, submitter));
}

/** What a look at the database shows. Nothing moves while it stays the same. */
interface Progress {
  runs: number;
  ended: number;
  steps: number;
  completed: number;
  attempts: number;
  workers: number;
}

async function look(db: DataSource): Promise<Progress> {
  const [progress] = await db.query(`
    SELECT (SELECT count(*)::int FROM cyclone_v_runs) AS runs,
           (SELECT count(*)::int FROM cyclone_v_runs WHERE finished_at IS NOT NULL) AS ended,
           (SELECT count(*)::int FROM cyclone_v_steps) AS steps,
           (SELECT count(*)::int FROM cyclone_v_steps WHERE state = 'completed') AS completed,
           (SELECT count(*)::int FROM cyclone_attempts) AS attempts,
           (SELECT count(*)::int FROM cyclone_workers) AS workers`);
  return progress;
}

/** Waits for the end of all runs as long as anything moves. */
async function watch(
  app: INestApplicationContext,
  { total, kills, patience }: { total: number; kills: number; patience: number },
  fleet: WorkerFleet,
  end: AbortSignal,
): Promise<void> {
  const db = app.get(DataSource);
  const bar = new ProgressBar(total, 'orders');
  let seen = '';
  for (let movedAt = Date.now(); !end.aborted;) {
    if (fleet.failure) throw fleet.failure;
    const progress = await look(db);
    const { runs, ended, steps, completed } = progress;
    const now = JSON.stringify({ ...progress, started: fleet.started });
    if (now !== seen) movedAt = Date.now();
    seen = now;
    bar.update(ended, `${completed} steps  ${fleet.kills} kills  ${await countReclaims(db)} reclaims`);
    if (ended >= total) break;
    if (Date.now() - movedAt > patience * 1000) {
      bar.log(`Nothing has moved for ${patience} seconds: giving up.`);
      break;
    }
    // The kills are spread over the work, which is in steps: many of them may be done before the first order has ended.
    const allSteps = runs === 0 ? Infinity : (steps / runs) * total;
    const isDue = fleet.kills < kills && completed >= (allSteps * (fleet.kills + 1)) / (kills + 1);
    if (isDue) await killSomebodyAtWork(db, fleet, bar);
    await delay(LOOK_MS, undefined, { signal: end }).catch(() => undefined);
  }
  bar.end();
}

async function killSomebodyAtWork(db: DataSource, fleet: WorkerFleet, bar: ProgressBar): Promise<void> {
  const [busiest] = await db.query(
    `SELECT lease_owner AS id, count(*)::int AS steps
     FROM cyclone_v_steps WHERE state = 'running' AND lease_owner = ANY($1)
     GROUP BY lease_owner ORDER BY steps DESC LIMIT 1`,
    [fleet.ids],
  );
  if (!busiest) return;
  fleet.kill(busiest.id);
  bar.log(`kill -9 ${busiest.id}, with ${busiest.steps} steps in its hands`);
}
