// One step that lasts for ten leases, in an application that is bundled whole. Says how often the step was called, and who renewed.
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
  async last(block: boolean, ctx: StepContext): Promise<{ generation: number }> {
    calls++;
    const end = performance.now() + (block ? 3 * LEASE_MS : 0);
    while (performance.now() < end);
    await new Promise((resolve) => setTimeout(resolve, (block ? 7 : 10) * LEASE_MS));
    const tx = await ctx.completionTx();
    const rows = await tx.query('select lease_generation from engine.cyclone_steps where run_id = $1', [ctx.runId]);
    return { generation: (rows as { lease_generation: number }[])[0]?.lease_generation ?? 0 };
  }
}
const long = stepsOf(LongSteps);

@Workflow({ name: 'last_long' })
class LastLong implements WorkflowDefinition<boolean, { generation: number }> {
  define(b: WorkflowBuilder, block: boolean) {
    return b.step(long.last, lit(block));
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
  const run = await app.get(WorkflowClient).submit(LastLong, process.argv[2] === 'block');
  const { generation } = await run.result({ timeout: '2m' });
  const { renewals } = app.get(WorkerPool).health() ?? {};
  await app.close();
  console.log(JSON.stringify({ calls, generation, renewals }));
}
void main();
