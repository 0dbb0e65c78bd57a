import { Injectable, Module, type CanActivate, type DynamicModule, type ExecutionContext } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { IsString } from 'class-validator';
import {
  Action,
  CycloneModule,
  OnStepEvent,
  PermanentError,
  Step,
  StepContext,
  Workflow,
  from,
  lit,
  stepsOf,
  type StepEvent,
  type WorkerOptions,
  type WorkflowBuilder,
  type WorkflowDefinition,
} from 'nestjs-cyclone';
import { CycloneAdminModule } from 'nestjs-cyclone/admin';
import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

@Entity('ledger')
export class LedgerEntry {
  @PrimaryGeneratedColumn()
  id!: number;

  @Column('bigint', { name: 'run_id' })
  runId!: string;

  @Column('text')
  node!: string;

  @Column('numeric')
  amount!: string;
}

export class OrderDto {
  @IsString()
  id!: string;

  @IsString()
  amount!: string;
}

/** What the outside world is like at the moment. */
export const world = { cardsAreDeclined: false, flaky: new Set<string>() };

@Injectable()
export class OrderSteps {
  readonly events: string[] = [];

  @Step({ input: OrderDto, retry: { maxAttempts: 3, backoff: { type: 'fixed', delay: 10 } } })
  async charge(order: OrderDto, ctx: StepContext): Promise<{ id: string; amount: string }> {
    if (world.cardsAreDeclined) throw new PermanentError('the card was declined');
    if (world.flaky.delete(order.id)) throw new Error('the network is down');
    const tx = await ctx.completionTx();
    await tx.insert(LedgerEntry, { runId: ctx.runId, node: ctx.node, amount: order.amount });
    return { id: order.id, amount: order.amount };
  }

  @Action()
  async confirm(payment: { id: string; amount: string }, ctx: StepContext): Promise<void> {
    ctx.logger.debug?.(payment.id);
  }

  @OnStepEvent('completed')
  hear(event: StepEvent): void {
    this.events.push(event.node);
  }
}
export const orders = stepsOf(OrderSteps);

@Workflow({ name: 'place_order', input: OrderDto })
export class PlaceOrder implements WorkflowDefinition<OrderDto, { id: string; amount: string }> {
  define(b: WorkflowBuilder, order: OrderDto) {
    const payment = b.step(orders.charge, lit(order));
    b.action(orders.confirm, from(payment));
    return payment;
  }
}

@Injectable()
class TokenGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string | undefined> }>();
    return headers['authorization'] === 'Bearer secret';
  }
}

export interface Choices {
  url: string;
  schema: string;
  migrationsRun: boolean;
  worker: false | WorkerOptions;
}

@Module({})
export class Application {
  static of({ url, schema, migrationsRun, worker }: Choices): DynamicModule {
    return {
      module: Application,
      imports: [
        TypeOrmModule.forRoot({
          type: 'postgres',
          url,
          entities: [LedgerEntry],
          synchronize: false,
          poolSize: 10,
          retryAttempts: 0,
        }),
        CycloneModule.forRoot({ schema, migrationsRun, worker }),
        CycloneAdminModule.forRoot({ path: 'admin', guards: [TokenGuard], getUser: () => 'somebody' }),
      ],
      providers: [OrderSteps, PlaceOrder],
    };
  }
}
