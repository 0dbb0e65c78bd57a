// An application in a process of its own that submits runs, works on them and waits for them until its parent says stop. Which
// library it uses is told by its argument, so decorators are applied by hand to what that exports.
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { pathToFileURL } from 'node:url';

const { library, url } = JSON.parse(process.argv[2] ?? '');
/** @type {typeof import('nestjs-cyclone')} */
const { Action, CycloneModule, Step, StepContext, Workflow, WorkflowClient, from, lit, stepsOf } = await import(
  pathToFileURL(library).href
);

/** @typedef {{ id: string, fails: boolean }} Work */

class Steps {
  /**
   * @param {Work} work
   * @param {import('nestjs-cyclone').StepContext} ctx
   */
  prepare(work, ctx) {
    if (work.fails && ctx.attempt === 1) throw new Error('the first attempt fails');
    return work;
  }
  /**
   * @param {Work} work
   * @param {import('nestjs-cyclone').StepContext} ctx
   */
  async book(work, ctx) {
    const tx = await ctx.completionTx();
    await tx.query('insert into bookings (run_id, node) values ($1, $2)', [ctx.runId, ctx.node]);
    return work;
  }
  done() {}
}
const options = { retry: { maxAttempts: 3, backoff: { type: /** @type {const} */ ('fixed'), delay: 10 } } };
const types = [Object, StepContext];
for (const [method, decorator] of Object.entries({ prepare: Step(options), book: Step(options), done: Action() })) {
  Reflect.defineMetadata('design:paramtypes', types, Steps.prototype, method);
  decorator(Steps.prototype, method, /** @type {any} */ (Object.getOwnPropertyDescriptor(Steps.prototype, method)));
}
Injectable()(Steps);
const steps = stepsOf(Steps);

class Book {
  /**
   * @param {import('nestjs-cyclone').WorkflowBuilder} b
   * @param {Work} work
   */
  define(b, work) {
    const prepared = b.step(steps.prepare, lit(work));
    const booked = b.step(steps.book, from(prepared));
    b.action(steps.done, from(booked));
    return booked;
  }
}
Workflow({ name: 'book' })(Book);

function Application() {}
Module({
  imports: [
    TypeOrmModule.forRoot({ type: 'postgres', url, poolSize: 10, retryAttempts: 0 }),
    CycloneModule.forRoot({ migrationsRun: true, worker: { queues: { default: 5 }, pollInterval: '200ms' } }),
  ],
  providers: [Steps, Book],
})(Application);

/** @param {object} message */
const tell = (message) => process.send?.(message, () => undefined);
const problem = (/** @type {unknown} */ what) => tell({ problem: String(what) });
const quiet = () => undefined;
const logger = { log: quiet, debug: quiet, verbose: quiet, warn: problem, error: problem, fatal: problem };

const load = { going: true };
process.on('message', () => (load.going = false));
process.on('disconnect', () => process.exit()); // the test is gone

try {
  const app = await NestFactory.createApplicationContext(/** @type {any} */ (Application), {
    logger,
    abortOnError: false,
  });
  tell({ started: true });
  const workflows = app.get(WorkflowClient);
  for (let round = 0; load.going; round++) {
    const works = [0, 1, 2].map((i) => ({ id: `${process.pid}-${round}-${i}`, fails: i === 1 && round % 3 === 0 }));
    const [once, ...many] = works;
    const runs = await workflows.submitMany(Book, many);
    if (once) runs.push(await workflows.submitOnce(Book, once.id, once));
    await Promise.all(runs.map((run) => run.result({ timeout: '60s' })));
    tell({ completed: runs.length });
  }
  await app.close();
} catch (error) {
  tell({ failed: `${/** @type {Error} */ (error).name}: ${/** @type {Error} */ (error).message}` });
}
process.disconnect?.();
