// One step that lasts for ten leases (`wait`, `block`), or for none (`short`). Says how often it was called, and who renewed its lease.
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import {
  CycloneModule,
  Step,
  StepContext,
  WorkerPool,
  Workflow,
  WorkflowBuilder,
  WorkflowClient,
  lit,
  stepsOf,
  type WorkflowDefinition,
} from 'nestjs-cyclone';
import pg from 'pg';

const LEASE_MS = 2_000;
let calls = 0;

@Injectable()
class LongSteps {
  /** With `block`, nothing else runs on this thread for three leases. */
  @Step()
  async last(how: string, ctx: StepContext): Promise<{ generation: number }> {
    calls++;
    const blocked = how === 'block' ? 3 : 0;
    const end = performance.now() + blocked * LEASE_MS;
    while (performance.now() < end);
    await new Promise((resolve) => setTimeout(resolve, how === 'short' ? 0 : (10 - blocked) * LEASE_MS));
    const tx = await ctx.completionTx();
    const rows = await tx.query('select lease_generation from engine.cyclone_steps where run_id = $1', [ctx.runId]);
    return { generation: (rows as { lease_generation: number }[])[0]?.lease_generation ?? 0 };
  }
}
const long = stepsOf(LongSteps);

@Workflow({ name: 'last_long' })
class LastLong implements WorkflowDefinition<string, { generation: number }> {
  define(b: WorkflowBuilder, how: string) {
    return b.step(long.last, lit(how));
  }
}

@Module({
  imports: [
    // TypeORM looks for `pg` at run time, where a bundle has none: it is given the one that is bundled.
    TypeOrmModule.forRoot({ type: 'postgres', driver: pg, url: process.env['DATABASE_URL'] ?? '', retryAttempts: 0 }),
    CycloneModule.forRoot({ schema: 'engine', migrationsRun: true, worker: { leaseTtl: LEASE_MS } }),
  ],
  providers: [LongSteps, LastLong],
})
class AppModule {}

async function main(): Promise<void> {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['warn', 'error'] });
  const run = await app.get(WorkflowClient).submit(LastLong, process.argv[2] ?? 'wait');
  const { generation } = await run.result({ timeout: '2m' });
  const { renewals } = app.get(WorkerPool).health() ?? {};
  await app.close();
  console.log(JSON.stringify({ calls, generation, renewals }));
}
void main();
