import {
  Workflow,
  from,
  join,
  lit,
  type StepNode,
  type WorkflowBuilder,
  type WorkflowDefinition,
} from 'nestjs-cyclone';
import { orderSteps, type Payment } from './order.steps.js';
import { PlaceOrderDto } from './place-order.dto.js';

/**
 *              ┌─ charge ────────┐
 *   validate ──┤                 ├── sendReceipt
 *              └─ takeFromStock ─┘
 */
@Workflow({ name: 'place_order', input: PlaceOrderDto, runDeadline: '7d' })
export class PlaceOrder implements WorkflowDefinition<PlaceOrderDto, Payment> {
  /** Runs once, at submit, and describes the work; nothing is executed here. */
  define(b: WorkflowBuilder, order: PlaceOrderDto): StepNode<Payment> {
    const valid = b.step(orderSteps.validate, lit(order));
    const payment = b.step(orderSteps.charge, from(valid));
    const stock = b.action(orderSteps.takeFromStock, from(valid));
    b.action(orderSteps.sendReceipt, join({ order: from(valid), payment: from(payment) }), { after: [stock] });
    return payment;
  }
}
