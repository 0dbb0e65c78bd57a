import { setTimeout as delay } from 'node:timers/promises';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { AppModule } from '../app.module.js';
import { OrdersService } from '../orders/orders.service.js';
import type { PlaceOrderDto } from '../orders/place-order.dto.js';
import { Settings } from '../settings.js';
import { openDemoDatabase } from './database.js';
import { ProgressBar } from './progress-bar.js';
import { countReclaims, takeTally, type Tally } from './tally.js';
import { WorkerFleet } from './worker-fleet.js';

const WORKERS = 2;
/** Few slots, slow charges and short leases: so a kill always hits work, and the others soon take it over. */
const WORKER_OPTIONS = { queues: { default: 5 }, leaseTtl: '2s', pollInterval: '500ms' } as const;
const CARD_LATENCY_MS = 250;

const SUBMITTERS = 8;
const LOOK_MS = 100;
/** When nothing happens for so long, what is missing counts as lost. */
const PATIENCE_MS = 60_000;

/** Submits the orders, lets the workers do them and kills workers meanwhile. Null when it was interrupted. */
export async function runDemo(
  orders: PlaceOrderDto[],
  kills: number,
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
    try {
      fleet.start();
      await Promise.all([submit(app, orders, interruption), watch(app, orders.length, fleet, kills, interruption)]);
      await fleet.stop();
      return interruption.aborted ? null : await takeTally(app.get(DataSource), orders, fleet.kills);
    } finally {
      await fleet.stop();
      await app.close();
    }
  } finally {
    await remove();
  }
}

async function submit(app: INestApplicationContext, orders: PlaceOrderDto[], interruption: AbortSignal): Promise<void> {
  const service = app.get(OrdersService);
  const rest = orders.values();
  const submitter = async () => {
    for (const order of rest) {
      if (interruption.aborted) return;
      await service.place(order);
    }
  };
  await Promise.all(Array.from({ length: SUBMITTERS }, submitter));
}

async function watch(
  app: INestApplicationContext,
  total: number,
  fleet: WorkerFleet,
  kills: number,
  interruption: AbortSignal,
): Promise<void> {
  const db = app.get(DataSource);
  const bar = new ProgressBar(total, 'orders');
  let done = 0;
  for (let changedAt = Date.now(); done < total && !interruption.aborted;) {
    if (fleet.failure) throw fleet.failure;
    const [{ ended }] = await db.query(
      `SELECT count(*)::int AS ended FROM cyclone_v_runs WHERE finished_at IS NOT NULL`,
    );
    if (ended > done) changedAt = Date.now();
    else if (Date.now() - changedAt > PATIENCE_MS) break;
    done = ended;
    bar.update(done, `${fleet.kills} kills  ${await countReclaims(db)} reclaims`);

    // The kills are spread over the work: each one comes after some progress.
    const due = fleet.kills < kills && done >= (total * (fleet.kills + 1)) / (kills + 1);
    if (due && done < total) await killSomebodyAtWork(db, fleet, bar);
    await delay(LOOK_MS, undefined, { signal: interruption }).catch(() => undefined);
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
