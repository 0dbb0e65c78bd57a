import { Injectable } from '@nestjs/common';
import { Action, PermanentError, Step, StepContext, stepsOf } from 'nestjs-cyclone';
import { Decimal } from '../money/decimal.js';
import { CardTerminal } from './card-terminal.js';
import { LedgerEntry } from './ledger-entry.entity.js';
import { MailServer } from './mail-server.js';
import { PlaceOrderDto, type OrderLineDto } from './place-order.dto.js';
import { StockMovement } from './stock-movement.entity.js';

const LIMIT = Decimal.parse('10000000');

/** What travels from step to step is stored as JSON, so money is text here. */
export interface ValidOrder {
  id: string;
  email: string;
  total: string;
  lines: { line: number; productId: string; quantity: number }[];
}
export interface Payment {
  orderId: string;
  amount: string;
  authorization: string;
}

/**
 * The work of an order. A worker may die at any moment and another one calls the method again, so each method says how it
 * keeps its effect from happening twice.
 */
@Injectable()
export class OrderSteps {
  constructor(
    private readonly cards: CardTerminal,
    private readonly mail: MailServer,
  ) {}

  /** No effect: call it as often as you like. */
  @Step()
  validate(order: PlaceOrderDto): ValidOrder {
    const total = Decimal.sum(order.lines.map(netPrice));
    // Trying again will not help, so do not try again.
    if (total.isGreaterThan(LIMIT)) throw new PermanentError(`order ${order.id} is above the limit of ${LIMIT}`);
    return {
      id: order.id,
      email: order.email,
      total: total.toString(),
      lines: order.lines.map(({ productId, quantity }, index) => ({ line: index + 1, productId, quantity })),
    };
  }

  /** An effect on another system, made safe by its idempotency key, and one in our database, made safe by the transaction. */
  @Step({ timeout: '30s', retry: { maxAttempts: 8, backoff: { type: 'exponential', base: '500ms', max: '1m' } } })
  async charge(order: ValidOrder, ctx: StepContext): Promise<Payment> {
    const { authorization } = await this.cards.authorize(order.total, ctx.idempotencyKey, ctx.signal);
    // Asking again and again does not make a card good: that is for people to settle, who then retry the run.
    if (authorization === null) throw new PermanentError('the card terminal declined the card');

    // The transaction in which this step completes: the ledger row exists if and only if the step has completed.
    // It holds a connection, so ask for it when the slow work is done.
    const tx = await ctx.completionTx();
    await tx.insert(LedgerEntry, { orderId: order.id, runId: ctx.runId, node: ctx.node, amount: order.total });
    return { orderId: order.id, amount: order.total, authorization };
  }

  /** An action has no output. All rows or none: again the completion transaction. */
  @Action()
  async takeFromStock(order: ValidOrder, ctx: StepContext): Promise<void> {
    const tx = await ctx.completionTx();
    await tx.insert(
      StockMovement,
      order.lines.map((line) => ({ orderId: order.id, ...line })),
    );
  }

  /** A mail cannot be rolled back. The key is the same in every attempt, so the mail server tells a repetition. */
  @Action({ retry: { maxAttempts: 10 } })
  async sendReceipt(receipt: { order: ValidOrder; payment: Payment }, ctx: StepContext): Promise<void> {
    const { order, payment } = receipt;
    await this.mail.send({
      idempotencyKey: ctx.idempotencyKey,
      recipient: order.email,
      subject: `Your order ${order.id}`,
      body: `We charged ${payment.amount} (${payment.authorization}). Thank you!`,
    });
  }
}

/** Typed references to the methods above, for workflows. */
export const orderSteps = stepsOf(OrderSteps);

function netPrice({ unitPrice, quantity, discount = '0' }: OrderLineDto): Decimal {
  return Decimal.parse(unitPrice)
    .times(Decimal.parse(String(quantity)))
    .times(Decimal.ONE.minus(Decimal.parse(discount)));
}
