// Two workflows whose classes a minifier calls by each other's names when a build puts them in another order.
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { CycloneModule, Step, Workflow, WorkflowBuilder, WorkflowClient, lit, stepsOf } from 'nestjs-cyclone';
import pg from 'pg';

// <one>
@Injectable()
class PlaceSteps {
  @Step()
  async place(id: string): Promise<string> {
    return `placed ${id}`;
  }
}
@Workflow({ name: 'place_order' })
class PlaceOrder {
  define(b: WorkflowBuilder, id: string) {
    return b.step(stepsOf(PlaceSteps).place, lit(id));
  }
}
// </one>

// <other>
@Injectable()
class CancelSteps {
  @Step()
  async cancel(id: string): Promise<string> {
    return `cancelled ${id}`;
  }
}
@Workflow({ name: 'cancel_order' })
class CancelOrder {
  define(b: WorkflowBuilder, id: string) {
    return b.step(stepsOf(CancelSteps).cancel, lit(id));
  }
}
// </other>

@Module({
  imports: [
    TypeOrmModule.forRoot({ type: 'postgres', driver: pg, url: process.env['DATABASE_URL'] ?? '', retryAttempts: 0 }),
    CycloneModule.forRoot({ migrationsRun: true }),
  ],
  providers: [PlaceSteps, PlaceOrder, CancelSteps, CancelOrder],
})
class AppModule {}

async function main(): Promise<void> {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['warn', 'error'] });
  const workflows = app.get(WorkflowClient);
  const placed = await workflows.submitOnce(PlaceOrder, '4711', '4711');
  const cancelled = await workflows.submitOnce(CancelOrder, '4711', '4711');
  const results = [await placed.result({ timeout: '60s' }), await cancelled.result({ timeout: '60s' })];
  await app.close();
  console.log(JSON.stringify({ created: [placed.created, cancelled.created], results }));
}
void main();
