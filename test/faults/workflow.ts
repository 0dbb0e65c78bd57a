import { Injectable } from '@nestjs/common';
import type { WorkflowBuilder } from '#cyclone/graph/builder.js';
import { from, lit } from '#cyclone/graph/inputs.js';
import { stepsOf } from '#cyclone/graph/steps-of.js';
import type { WorkflowDefinition } from '#cyclone/graph/workflow.js';
import { Step } from '#cyclone/nest/decorators/step.decorator.js';
import { Workflow } from '#cyclone/nest/decorators/workflow.decorator.js';

/** Declared only: the test's worker executes them. One attempt each, so whatever is charged ends its run. */
@Injectable()
class Steps {
  /** Writes an entry on its completion transaction. */
  @Step({ name: 'ledger', retry: { maxAttempts: 1 } })
  async ledger(order: number): Promise<number> {
    return order;
  }

  /** Does not touch the database. */
  @Step({ name: 'plain', retry: { maxAttempts: 1 } })
  async plain(order: number): Promise<number> {
    return order;
  }
}
export const steps = stepsOf(Steps);

/** An entry, a step that completes with a flush, and an entry again. */
@Workflow({ name: 'order' })
export class Order implements WorkflowDefinition<number, number> {
  define(b: WorkflowBuilder, order: number) {
    const charge = b.step(steps.ledger, lit(order), { node: 'charge' });
    const pack = b.step(steps.plain, from(charge), { node: 'pack' });
    return b.step(steps.ledger, from(pack), { node: 'book' });
  }
}

/** Ledger entries of one order. */
export const ENTRIES = 2;
