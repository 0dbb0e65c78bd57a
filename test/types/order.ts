import { Injectable } from '@nestjs/common';
import {
  Action,
  Step,
  StepContext,
  Workflow,
  WorkflowBuilder,
  from,
  join,
  lit,
  stepsOf,
  type StepNode,
  type WorkflowDefinition,
} from 'nestjs-cyclone';

export interface OrderLine {
  sku: string;
  quantity: number;
}
export interface Order {
  id: string;
  email: string;
  currency: 'usd' | 'eur';
  lines: OrderLine[];
}
export interface ValidOrder {
  id: string;
  email: string;
  total: number;
  note?: string;
  lines: OrderLine[];
}
export interface Payment {
  paymentId: string;
  amount: number;
  chargedAt: Date;
}
export interface Shipment {
  tracking: string;
}
export interface Receipt {
  orderId: string;
  paymentId: string;
  tracking: string;
}

@Injectable()
export class OrderSteps {
  @Step({ queue: 'orders' })
  async validate(order: Order): Promise<ValidOrder> {
    return { id: order.id, email: order.email, total: order.lines.length * 100, lines: order.lines };
  }

  @Step({ retry: { maxAttempts: 5, backoff: { type: 'exponential', base: '1s', max: '5m' } }, timeout: '30s' })
  async charge(order: ValidOrder, ctx: StepContext): Promise<Payment> {
    const tx = await ctx.completionTx();
    await tx.query('insert into ledger (run_id, node, amount) values ($1, $2, $3)', [ctx.runId, ctx.node, order.total]);
    return { paymentId: ctx.idempotencyKey, amount: order.total, chargedAt: new Date() };
  }

  @Step()
  async ship(order: { orderId: string; lines: OrderLine[] }, ctx: StepContext): Promise<Shipment> {
    if (order.lines.length === 0) ctx.snooze('1m');
    return { tracking: order.orderId };
  }

  @Step()
  async find(id: string): Promise<Payment | undefined> {
    return id === '' ? undefined : { paymentId: id, amount: 1, chargedAt: new Date() };
  }

  @Step()
  buildReceipt(parts: { order: ValidOrder; payment: { paymentId: string }; shipment: Shipment }): Receipt {
    return { orderId: parts.order.id, paymentId: parts.payment.paymentId, tracking: parts.shipment.tracking };
  }

  @Action({ retry: { maxAttempts: 10 } })
  async sendReceipt(receipt: Receipt, ctx: StepContext): Promise<void> {
    ctx.logger.log(`receipt of ${receipt.orderId}`);
    ctx.progress(0.5, 'half');
    ctx.progress(1);
  }

  private helper(a: number, b: number): number {
    return a + b;
  }

  describe(): string {
    return `${this.helper(1, 2)}`;
  }
}
export const orders = stepsOf(OrderSteps);

@Workflow({ name: 'ship_order' })
export class ShipOrder implements WorkflowDefinition<{ orderId: string; lines: OrderLine[] }, Shipment> {
  define(b: WorkflowBuilder, input: { orderId: string; lines: OrderLine[] }): StepNode<Shipment> {
    return b.step(orders.ship, lit(input));
  }
}

@Workflow({ name: 'place_order', runDeadline: '7d' })
export class PlaceOrder implements WorkflowDefinition<Order, Receipt> {
  define(b: WorkflowBuilder, order: Order) {
    const valid = b.step(orders.validate, lit(order));
    const payment = b.step(orders.charge, from(valid), { timeout: '10s' });
    const shipment = b.step(orders.ship, join({ orderId: from(valid, 'id'), lines: from(valid, 'lines') }), {
      after: [payment],
    });
    const receipt = b.step(
      orders.buildReceipt,
      join({ order: from(valid), payment: from(payment), shipment: from(shipment) }),
    );
    b.action(orders.sendReceipt, from(receipt), { onDepFailure: 'cancel_branch' });
    return receipt;
  }
}

@Workflow({ name: 'no_result' })
export class NoResult implements WorkflowDefinition<Receipt, void> {
  define(b: WorkflowBuilder, receipt: Receipt): void {
    b.action(orders.sendReceipt, lit(receipt));
  }
}
