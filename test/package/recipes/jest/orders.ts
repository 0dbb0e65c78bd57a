import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
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

@Injectable()
class OrderSteps {
  @Step()
  async charge(amount: number, ctx: StepContext): Promise<{ amount: number; attempt: number }> {
    return { amount, attempt: ctx.attempt };
  }
}
const orders = stepsOf(OrderSteps);

@Workflow({ name: 'place_order' })
class PlaceOrder implements WorkflowDefinition<number, { amount: number; attempt: number }> {
  define(b: WorkflowBuilder, amount: number) {
    return b.step(orders.charge, lit(amount));
  }
}

describe('an order', () => {
  let app: TestingModule;

  beforeAll(async () => {
    app = await Test.createTestingModule({
      imports: [
        TypeOrmModule.forRoot({ type: 'postgres', url: process.env['DATABASE_URL'] ?? '', retryAttempts: 0 }),
        CycloneModule.forRoot({ migrationsRun: true }),
      ],
      providers: [OrderSteps, PlaceOrder],
    }).compile();
    await app.init();
  }, 60_000);
  afterAll(() => app.close());

  it('is charged', async () => {
    const run = await app.get(WorkflowClient).submit(PlaceOrder, 12);
    expect(await run.result({ timeout: '30s' })).toEqual({ amount: 12, attempt: 1 });
    expect(app.get(WorkerPool).health()?.renewals.by).toBe(process.env['RENEWED_BY'] ?? 'thread');
  }, 60_000);
});
