// Compiled, never run: what must infer, and the mistakes that must not compile.
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
  type ActionHandle,
  type Input,
  type Node,
  type NotStorable,
  type StepHandle,
  type StepNode,
  type Stored,
  type SubmitOptions,
  type WorkflowDefinition,
  type WorkflowInput,
  type WorkflowOutput,
} from 'nestjs-cyclone';
import {
  NoResult,
  OrderSteps,
  PlaceOrder,
  orders,
  type Order,
  type Payment,
  type Receipt,
  type ValidOrder,
} from './order.js';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const check = <T extends true>(holds?: T): void => void holds;
type OutputOf<N> = N extends StepNode<infer O> ? O : never;

declare const b: WorkflowBuilder;
declare const order: Order;
declare const receipt: Receipt;

/* Inference */
const valid = b.step(orders.validate, lit(order));
check<Equal<typeof valid, StepNode<ValidOrder>>>();
const payment = b.step(orders.charge, from(valid));
check<Equal<OutputOf<typeof payment>['chargedAt'], string>>(); // a Date crosses JSONB as a string
const sent = b.action(orders.sendReceipt, lit(receipt), { after: [payment] });
check<Equal<typeof sent, Node>>();
check<Equal<typeof orders.validate, StepHandle<Order, ValidOrder>>>();
check<Equal<typeof orders.sendReceipt, ActionHandle<Receipt>>>();
// a method that nobody decorated is seen by its signature only, a private one not at all
check<
  Equal<keyof typeof orders, 'validate' | 'charge' | 'ship' | 'find' | 'buildReceipt' | 'sendReceipt' | 'describe'>
>();
// an inline literal keeps its unions and lists
b.step(orders.validate, lit({ id: '1', email: 'e', currency: 'usd', lines: [{ sku: 'a', quantity: 1 }] }));
// no output at all is stored as null
const found = b.step(orders.find, lit('1'));
check<Equal<OutputOf<typeof found>, Stored<Payment> | null>>();
// joins nest, also in lists
const nested = join({ a: { b: from(valid, 'id'), c: [from(valid, 'total'), lit('x')] } });
check<Equal<typeof nested, Input<{ a: { b: string; c: [number, 'x'] } }>>>();
const listed = join([from(valid), lit(1)]);
check<Equal<typeof listed, Input<[ValidOrder, 1]>>>();

check<Equal<WorkflowInput<PlaceOrder>, Order>>();
check<Equal<WorkflowOutput<PlaceOrder>, Receipt>>();
check<Equal<WorkflowOutput<NoResult>, void>>();
class Sometimes {
  define(builder: WorkflowBuilder, input: Order): StepNode<ValidOrder> | undefined {
    return input.id === '' ? undefined : builder.step(orders.validate, lit(input));
  }
}
check<Equal<WorkflowOutput<Sometimes>, ValidOrder>>();

/* What values become in the database */
check<Equal<Stored<Payment>['chargedAt'], string>>();
check<Equal<Stored<ValidOrder>, ValidOrder>>();
check<Equal<Stored<{ at?: Date }>, { at?: string }>>();
check<Equal<Stored<readonly (Date | undefined)[]>, (string | null)[]>>();
check<Equal<Stored<unknown>, unknown>>();
check<Equal<Stored<Map<string, number>>, NotStorable<Map<string, number>>>>();
check<Equal<Stored<{ id: string; method(): void }>, { id: string }>>();

/* Mistakes in a graph */
// @ts-expect-error E1 a literal of the wrong type
b.step(orders.validate, lit({ id: 1 }));
// @ts-expect-error E2 an upstream output that does not fit the input
b.step(orders.charge, from(payment));
// @ts-expect-error E3 a key that the upstream output does not have
from(valid, 'linez');
// @ts-expect-error E3 a method of a list is no key of an output
from(b.step(stepsOf(Lists).all, lit(1)), 'length');
// @ts-expect-error E5 an action has no output to read
from(b.action(orders.sendReceipt, lit(receipt)));
// @ts-expect-error E6 an action cannot be added as a step
b.step(orders.sendReceipt, lit(receipt));
// @ts-expect-error E6 a step cannot be added as an action
b.action(orders.validate, lit(order));
// @ts-expect-error E7 there is no such handler
void orders.helper;
// @ts-expect-error E8 a join that misses a field
b.step(orders.buildReceipt, join({ order: from(valid), payment: from(payment) }));
// @ts-expect-error E8 a join with a field of the wrong type
b.step(orders.ship, join({ orderId: from(valid, 'total'), lines: from(valid, 'lines') }));
// @ts-expect-error E12 a raw value without lit() or from()
b.step(orders.validate, order);
// @ts-expect-error E12 a raw value inside a join
b.step(orders.ship, join({ orderId: 'o1', lines: from(valid, 'lines') }));
// @ts-expect-error E12 a node without from()
b.step(orders.charge, valid);
// @ts-expect-error E13 a duration that is none
b.step(orders.validate, lit(order), { timeout: '5 parsecs' });
// @ts-expect-error E14 an unknown policy
b.step(orders.validate, lit(order), { onDepFailure: 'ignore' });
// @ts-expect-error a graph is data: a backoff function stands on the handler
b.step(orders.validate, lit(order), { retry: { backoff: () => '1s' } });
// @ts-expect-error after takes nodes
b.step(orders.validate, lit(order), { after: ['validate'] });

/* Mistakes in handlers */
@Injectable()
class Lists {
  @Step() all(count: number): string[] {
    return Array.from({ length: count }, () => 'x');
  }
}

@Injectable()
class Bad {
  // @ts-expect-error E17 @Step() without an output
  @Step() async nothing(i: string): Promise<void> {
    void i;
  }
  // @ts-expect-error E18 @Action() with an output
  @Action() async something(i: string): Promise<string> {
    return i;
  }
  // @ts-expect-error E19 the second parameter is a StepContext
  @Step() async wrongCtx(i: string, n: number): Promise<string> {
    return i + n;
  }
  // @ts-expect-error an output that cannot be stored
  @Step() async index(i: string): Promise<Map<string, number>> {
    return new Map([[i, 1]]);
  }
  // @ts-expect-error an option that does not exist
  @Step({ retries: 5 }) async typo(i: string): Promise<string> {
    return i;
  }
  // @ts-expect-error a backoff without its base
  @Step({ retry: { backoff: { type: 'exponential' } } }) async noBase(i: string): Promise<string> {
    return i;
  }
}

class AgeInput {
  chargedAt!: Date;
}
@Injectable()
class NeedsDate {
  // @ts-expect-error E22 a Date does not survive JSONB
  @Step() async age(i: { chargedAt: Date }): Promise<number> {
    return i.chargedAt.getTime();
  }
  @Step({ input: AgeInput }) async revived(i: AgeInput): Promise<number> {
    return i.chargedAt.getTime();
  }
  // @ts-expect-error E23 options.input is not the class of the parameter
  @Step({ input: AgeInput }) async mismatch(i: Order): Promise<number> {
    return i.lines.length;
  }
  @Step() async wantsString(i: { chargedAt: string }): Promise<string> {
    return i.chargedAt;
  }
  @Action({ retry: { backoff: (attempt, error) => (error instanceof RangeError ? '1h' : attempt * 1_000) } })
  async anything(i: unknown): Promise<void> {
    void i;
  }
}
b.step(stepsOf(NeedsDate).revived, from(payment)); // the stored form goes in, the handler gets a Date
b.step(stepsOf(NeedsDate).wantsString, lit({ chargedAt: new Date() }));
// @ts-expect-error E24 a Map cannot be stored
b.step(stepsOf(NeedsDate).wantsString, lit({ chargedAt: new Map<string, string>() }));

/* Mistakes in workflows */
// @ts-expect-error E20 @Workflow() on a class without define()
@Workflow({ name: 'bad' })
class NotAWorkflow {
  run(): void {}
}
@Workflow({ name: 'bad2' })
class WrongResult implements WorkflowDefinition<Order, Receipt> {
  // @ts-expect-error E21 define() returns the wrong node
  define(builder: WorkflowBuilder, o: Order) {
    return builder.step(orders.validate, lit(o));
  }
}
// @ts-expect-error a workflow has a name of its own: a build tool may change that of the class (R40)
@Workflow({ runDeadline: '1d' })
class WithoutName {
  define(builder: WorkflowBuilder, o: Order): void {
    builder.step(orders.validate, lit(o));
  }
}
class OrderDto {
  id!: string;
}
// @ts-expect-error options.input is not what define() takes
@Workflow({ name: 'wrong_input', input: OrderDto })
class WrongInput {
  define(builder: WorkflowBuilder, o: Order): void {
    builder.step(orders.validate, lit(o));
  }
}

/* Mistakes in options of a submit */
const later: SubmitOptions = { delay: '5m', tags: { customer: '7' }, priority: -1 };
// @ts-expect-error a delay and a start time exclude each other
const both: SubmitOptions = { delay: '5m', startAt: new Date() };
// @ts-expect-error a string of the connection is no transaction
const text: SubmitOptions = { tx: 'tx' };

/* The context cannot be made by hand, and snooze ends the handler */
declare const ctx: StepContext;
const never: never = ctx.snooze('1m');
const nothing: void = ctx.progress(0.5, 'half');
// @ts-expect-error a fraction is a number, no text
ctx.progress('50%');
// @ts-expect-error a note is a text
ctx.progress(0.5, { page: 3 });
// @ts-expect-error nothing but the fraction and the note
ctx.progress(1, 'pages', 3);
// @ts-expect-error it is abstract
const made = new StepContext();

void [WithoutName, OrderSteps, Bad, NotAWorkflow, WrongResult, WrongInput, later, both, text, never, nothing, made];
