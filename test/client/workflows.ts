import { Injectable } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsDate, IsEmail, IsInt, Min, ValidateNested } from 'class-validator';
import type { WorkflowBuilder } from '#cyclone/graph/builder.js';
import { from, lit } from '#cyclone/graph/inputs.js';
import { stepsOf } from '#cyclone/graph/steps-of.js';
import type { StepNode } from '#cyclone/graph/handle.js';
import type { WorkflowDefinition } from '#cyclone/graph/workflow.js';
import { Action } from '#cyclone/nest/decorators/action.decorator.js';
import { Step } from '#cyclone/nest/decorators/step.decorator.js';
import { Workflow } from '#cyclone/nest/decorators/workflow.decorator.js';

export class Line {
  @IsInt()
  @Min(1)
  quantity!: number;
}

export class Order {
  @IsEmail()
  email!: string;

  @IsDate()
  @Type(() => Date)
  placedAt!: Date;

  @ValidateNested({ each: true })
  @Type(() => Line)
  lines!: Line[];
}

@Injectable()
export class Steps {
  @Step()
  async echo(input: unknown): Promise<unknown> {
    return input;
  }

  @Step({ queue: 'orders', priority: 3, timeout: '30s' })
  async charge(input: { amount: number }): Promise<{ paid: number }> {
    return { paid: input.amount };
  }

  @Step({ input: Order })
  async check(order: Order): Promise<string> {
    return order.email;
  }

  @Action({ queue: 'mail' })
  async notify(to: string): Promise<void> {
    void to;
  }
}
export const steps = stepsOf(Steps);

/** One step, whose output is the result. */
@Workflow({ name: 'echo_flow' })
export class EchoFlow implements WorkflowDefinition<unknown, unknown> {
  define(b: WorkflowBuilder, input: unknown): StepNode<unknown> {
    return b.step(steps.echo, lit(input));
  }
}

/** charge → notify and charge → last; the result is that of a node which a discard upstream only cancels. */
@Workflow({ name: 'pay', runDeadline: '7d' })
export class Pay implements WorkflowDefinition<{ amount: number }, unknown> {
  define(b: WorkflowBuilder, input: { amount: number }) {
    const charge = b.step(steps.charge, lit(input));
    b.action(steps.notify, lit('ops'), { after: [charge], onDepFailure: 'cancel_branch' });
    return b.step(steps.echo, from(charge), { node: 'last', onDepFailure: 'cancel_branch' });
  }
}

/** Without a result. */
@Workflow({ name: 'tell' })
export class Tell implements WorkflowDefinition<string, void> {
  define(b: WorkflowBuilder, to: string): void {
    b.action(steps.notify, lit(to));
  }
}

/** Its define sees an instance of the DTO. */
@Workflow({ name: 'place_order', input: Order })
export class PlaceOrder implements WorkflowDefinition<Order, unknown> {
  define(b: WorkflowBuilder, order: Order) {
    if (!(order instanceof Order) || !(order.placedAt instanceof Date)) throw new Error('define got no instance');
    return b.step(steps.echo, lit({ email: order.email, year: order.placedAt.getUTCFullYear() }));
  }
}

/** `width` nodes side by side. */
@Workflow({ name: 'wide' })
export class Wide implements WorkflowDefinition<number, void> {
  define(b: WorkflowBuilder, width: number): void {
    for (let i = 0; i < width; i++) b.step(steps.echo, lit(i), { node: `n${i}` });
  }
}
