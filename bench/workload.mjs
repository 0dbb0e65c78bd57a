// The handlers and workflows of the benchmark. Decorators are applied by hand, because these files run as they are.
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Action, CycloneModule, Step, StepContext, Workflow, from, lit, stepsOf } from 'nestjs-cyclone';

function decorate(prototype, method, decorator) {
  Reflect.defineMetadata('design:paramtypes', [Object, StepContext], prototype, method);
  decorator(prototype, method, Object.getOwnPropertyDescriptor(prototype, method));
}

/** Called with the number of finished handlers; the worker process reports with it. */
export const progress = { started: undefined, count: 0 };

export class BenchSteps {
  noop() {
    progress.started ??= performance.now();
    progress.count++;
  }
  pass(input) {
    progress.started ??= performance.now();
    progress.count++;
    return input;
  }
  async book(input, ctx) {
    progress.started ??= performance.now();
    const tx = await ctx.completionTx();
    await tx.query('insert into bench_ledger (run_id, node, amount) values ($1, $2, 1.5)', [ctx.runId, ctx.node]);
    progress.count++;
  }
}
decorate(BenchSteps.prototype, 'noop', Action({ queue: 'bench' }));
decorate(BenchSteps.prototype, 'pass', Step({ queue: 'bench' }));
decorate(BenchSteps.prototype, 'book', Action({ queue: 'ledger' }));
Injectable()(BenchSteps);
export const bench = stepsOf(BenchSteps);

export class Chain {
  define(b, input) {
    const first = b.step(bench.pass, lit(input), { node: 'a' });
    const second = b.step(bench.pass, from(first), { node: 'b' });
    return b.step(bench.pass, from(second), { node: 'c' });
  }
}
Workflow({ name: 'chain' })(Chain);

/** An application on `url`; `worker` as in CycloneModule's options. */
export function benchModule(url, schema, worker, poolSize) {
  const BenchModule = class {};
  Module({
    imports: [
      TypeOrmModule.forRoot({ type: 'postgres', url, poolSize }),
      CycloneModule.forRoot({ schema, migrationsRun: true, worker }),
    ],
    providers: [BenchSteps, Chain],
  })(BenchModule);
  return BenchModule;
}
