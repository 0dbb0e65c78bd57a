// Compiled, never run: what the client must infer, and the mistakes that must not compile.
import type { RunHandle } from '#cyclone/client/run-handle.js';
import type { WorkflowClient } from '#cyclone/client/workflow-client.js';
import type { Stored } from 'nestjs-cyclone';
import { NoResult, OrderSteps, PlaceOrder, orders, type Order, type Payment, type Receipt } from './order.js';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const check = <T extends true>(holds?: T): void => void holds;

declare const client: WorkflowClient;
declare const order: Order;
declare const receipt: Receipt;

/* Inference */
const placed = client.submit(PlaceOrder, order, { delay: '5m', tags: { customer: '7' } });
check<Equal<typeof placed, Promise<RunHandle<Receipt>>>>();
const once = client.submitOnce(PlaceOrder, order.id, order);
check<Equal<typeof once, Promise<RunHandle<Receipt>>>>();
const silent = client.submit(NoResult, receipt);
check<Equal<typeof silent, Promise<RunHandle<void>>>>();
const paid = client.enqueue(orders.charge, { id: '1', email: 'e', total: 1, lines: [] });
check<Equal<typeof paid, Promise<RunHandle<Stored<Payment>>>>>();
const mailed = client.enqueue(orders.sendReceipt, receipt);
check<Equal<typeof mailed, Promise<RunHandle<void>>>>();

/* Mistakes */
// @ts-expect-error E10 the wrong input
void client.submit(PlaceOrder, { id: 'x' });
// @ts-expect-error E10 the wrong input with a key
void client.submitOnce(PlaceOrder, 'key', { id: 'x' });
// @ts-expect-error a key is a text
void client.submitOnce(PlaceOrder, 7, order);
// @ts-expect-error E15 the wrong input of a job
void client.enqueue(orders.sendReceipt, { orderId: 1 });
// @ts-expect-error E15 the wrong input of a job with an output
void client.enqueue(orders.validate, receipt);
// @ts-expect-error E16 a class that is no workflow
void client.submit(OrderSteps, order);
// @ts-expect-error E16 an instance in place of the class
void client.submit(new PlaceOrder(), order);
// @ts-expect-error a job is a handle, not a method
void client.enqueue(OrderSteps.prototype.validate, order);
// @ts-expect-error a delay and a start time exclude each other
void client.submit(PlaceOrder, order, { delay: '5m', startAt: new Date() });
// @ts-expect-error a tag is a text
void client.submit(PlaceOrder, order, { tags: { customer: 7 } });

void [placed, once, silent, paid, mailed];
