import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import {
  Action,
  CycloneModule,
  Step,
  StepContext,
  Workflow,
  WorkflowBuilder,
  WorkflowClient,
  from,
  lit,
  stepsOf,
  type WorkflowDefinition,
} from 'nestjs-cyclone';

interface Greeting {
  text: string;
}

@Injectable()
class GreetingSteps {
  @Step()
  async greet(name: string, ctx: StepContext): Promise<Greeting> {
    const tx = await ctx.completionTx();
    const text = `Hello, ${name}!`;
    await tx.query('insert into greetings (run_id, text) values ($1, $2)', [ctx.runId, text]);
    return { text };
  }

  @Action()
  async send(greeting: Greeting, ctx: StepContext): Promise<void> {
    ctx.logger.log(greeting.text);
  }
}
const greetings = stepsOf(GreetingSteps);

@Workflow({ name: 'greet_somebody' })
class GreetSomebody implements WorkflowDefinition<string, Greeting> {
  define(b: WorkflowBuilder, name: string) {
    const greeting = b.step(greetings.greet, lit(name));
    b.action(greetings.send, from(greeting));
    return greeting;
  }
}

@Module({
  imports: [
    TypeOrmModule.forRoot({ type: 'postgres', url: process.env['DATABASE_URL'] ?? '', poolSize: 10 }),
    CycloneModule.forRoot({ schema: 'engine', migrationsRun: true }),
  ],
  providers: [GreetingSteps, GreetSomebody],
})
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: ['warn', 'error'] });
const run = await app.get(WorkflowClient).submitOnce(GreetSomebody, 'first', 'world');
const greeting: Greeting = await run.result({ timeout: '30s' });
const state = await run.wait({ timeout: '30s' });
await app.close();
console.log(JSON.stringify({ greeting, state, created: run.created }));
