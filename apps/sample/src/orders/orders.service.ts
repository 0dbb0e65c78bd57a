import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { RunNotFoundError, WorkflowClient } from 'nestjs-cyclone';
import { DataSource } from 'typeorm';
import { LedgerEntry } from './ledger-entry.entity.js';
import { Order } from './order.entity.js';
import type { Payment } from './order.steps.js';
import { PlaceOrderDto } from './place-order.dto.js';
import { PlaceOrder } from './place-order.workflow.js';
import { StockMovement } from './stock-movement.entity.js';

@Injectable()
export class OrdersService {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly workflows: WorkflowClient,
  ) {}

  /**
   * Accepts an order. The order and its run are stored in one transaction, so there is never one without the other.
   * A client that did not get our answer may ask again: an id that is known gives the run that it has.
   */
  async place(order: PlaceOrderDto): Promise<{ runId: string; created: boolean }> {
    return this.dataSource.transaction(async (tx) => {
      // Its run may have been purged since, so that the key alone would make a second one.
      const known = await tx.findOneBy(Order, { id: order.id });
      if (known) return { runId: known.runId, created: false };
      const run = await this.workflows.submitOnce(PlaceOrder, order.id, order, { tx });
      if (run.created) await tx.insert(Order, { id: order.id, email: order.email, runId: run.id });
      return { runId: run.id, created: run.created };
    });
  }

  /**
   * What was charged, as soon as it is; null if there is no order with this id.
   * @throws RunFailedError, RunCancelledError, RunNotFoundError, WaitTimeoutError
   */
  async payment(id: string): Promise<Payment | null> {
    const order = await this.dataSource.manager.findOneBy(Order, { id });
    return order && this.workflows.run(order.runId, PlaceOrder).result({ timeout: '5s' });
  }

  /** Everything about an order; null if there is none with this id. */
  async find(id: string) {
    const { manager } = this.dataSource;
    const order = await manager.findOneBy(Order, { id });
    if (!order) return null;
    const [progress, ledger, stock] = await Promise.all([
      this.progressOf(order.runId),
      manager.findBy(LedgerEntry, { orderId: id }),
      manager.find(StockMovement, { where: { orderId: id }, order: { line: 'ASC' } }),
    ]);
    return {
      id,
      email: order.email,
      placedAt: order.placedAt,
      runId: order.runId,
      ...progress,
      ledger: ledger.map(({ node, amount, chargedAt }) => ({ node, amount, chargedAt })),
      stock: stock.map(({ line, productId, quantity }) => ({ line, productId, quantity })),
    };
  }

  /** How the run of an order is doing. A run that was over may have been purged since; the order stays. */
  private async progressOf(runId: string) {
    const run = this.workflows.run(runId, PlaceOrder);
    try {
      const [{ state }, steps] = await Promise.all([run.info(), run.steps()]);
      return { state, failure: steps.find((step) => step.state === 'discarded')?.error ?? null };
    } catch (error) {
      if (RunNotFoundError.is(error)) return { state: 'purged' as const, failure: null };
      throw error;
    }
  }
}
