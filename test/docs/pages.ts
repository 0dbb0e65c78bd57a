/** What the TypeScript of a page takes from its reader: the names that it uses and does not make. */
export interface Surroundings {
  readonly before: string;
  /** What comes before the block of this number, from 0. */
  readonly beforeBlock?: Readonly<Record<number, string>>;
  readonly after?: string;
}

const COUNTER = `
class Counter {
  constructor(private readonly options: { name: string; help: string; labelNames: string[] }) {}
  inc(labels: Record<string, string>): void { console.log(this.options.name, labels); }
}`;

const ORDERS = `
import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';
interface Order { id: string; total: number }
interface Payment { orderId: string; amount: number }
@Entity() class LedgerEntry {
  @PrimaryGeneratedColumn() id!: number;
  @Column('bigint') runId!: string;
  @Column('text') node!: string;
  @Column('int') amount!: number;
}`;

/** The README can be run: it charges one order, says what it was, and ends. */
const README: Surroundings = {
  before: `
import { NestFactory } from '@nestjs/core';
${ORDERS}
${COUNTER}
@Injectable() class MailServer {
  async send(payment: Payment, options: { idempotencyKey: string; signal: AbortSignal }): Promise<void> { void [payment, options]; }
}
const url = process.env.DATABASE_URL;`,
  beforeBlock: {
    2: `
const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error'] });
const workflows = app.get(WorkflowClient);
await app.get(DataSource).query('create table ledger_entry (id serial primary key, "runId" bigint, node text, amount int)');
const order: Order = { id: 'order-1', total: 42 };`,
  },
  after: `
console.log(payment, await app.get(DataSource).query('select node, amount from ledger_entry'));
await app.close();`,
};

const STEPS = `
@Injectable() class Steps {
  @Step() async load(id: string): Promise<{ id: string; to?: { city: { zip: string } }; lines: string[] }> { return { id, lines: [] }; }
  @Step() async print(zip: string | null): Promise<string> { return zip ?? ''; }
  @Step() async pack(parcel: { zip?: string; lines: string[] }): Promise<number> { return parcel.lines.length; }
  @Action() async ping(): Promise<void> {}
}
const steps = stepsOf(Steps);
declare const b: WorkflowBuilder;
declare const workflows: WorkflowClient;`;

/** By path. A page with TypeScript that is not here has none that misses anything. */
export const SURROUNDINGS: Readonly<Record<string, Surroundings>> = {
  'README.md': README,
  'libs/cyclone/README.md': { before: ORDERS },
  'docs/types.md': { before: STEPS },
  'docs/bundling.md': { before: `const url = 'postgres://';` },
  'docs/admin-api.md': {
    before: `
import { Injectable as AnyInjectable, type CanActivate } from '@nestjs/common';
interface Staff { roles: string[] }
@AnyInjectable() class StaffGuard implements CanActivate { canActivate(): boolean { return true; } }
declare const url: string;`,
  },
  'docs/payload-codec.md': {
    before: 'declare const key1: Buffer; declare const key2: Buffer;',
    beforeBlock: { 0: '() => ' },
  },
  'docs/operations/migrating.md': {
    before: `
import type { MigrationInterface } from 'typeorm';
class CreateOrders1767225600000 implements MigrationInterface { async up(): Promise<void> {} async down(): Promise<void> {} }`,
  },
  'docs/operations/workers.md': { before: COUNTER },
};
