import { Injectable } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { CycloneModule, OperatorClient, Step, stepsOf, WorkflowClient, type StepContext } from 'nestjs-cyclone';
import { describeWithPgbouncer, startPgbouncer, type Pgbouncer } from '../support/pgbouncer.js';
import { Applications } from './app.fixture.js';

@Injectable()
class Ledger {
  @Step() async write(amount: number, ctx: StepContext): Promise<number> {
    const tx = await ctx.completionTx();
    await tx.query('insert into pooler_ledger values ($1, $2)', [ctx.runId, amount]);
    return ctx.attempt;
  }
}

describeWithPgbouncer('behind pgbouncer in transaction mode', () => {
  let apps: Applications;
  let pooler: Pgbouncer;
  beforeAll(async () => {
    apps = await Applications.create();
    await apps.sql('create table pooler_ledger (run_id bigint primary key, amount int)');
    pooler = await startPgbouncer(apps.database.url, { settings: { default_pool_size: 6 } });
  });
  afterEach(() => apps.closeAll());
  afterAll(async () => {
    await pooler.stop();
    await apps.end();
  });

  it.each([
    ['the default options', {}, true],
    ['the right options', { preparedStatements: false, listen: false }, false],
  ] as const)('works with %s, and warns where they do not say it (F17)', async (_, options, warned) => {
    const app = await apps.start({
      imports: [
        TypeOrmModule.forRoot({
          type: 'postgres',
          url: pooler.through(apps.database.url),
          poolSize: 12,
          retryAttempts: 1,
        }),
        CycloneModule.forRoot({ migrationsRun: true, ...options }),
      ],
      providers: [Ledger],
    });
    const client = app.get(WorkflowClient);
    const runs = await Promise.all(Array.from({ length: 40 }, (__, i) => client.enqueue(stepsOf(Ledger).write, i)));
    expect(new Set(await Promise.all(runs.map((run) => run.result())))).toEqual(new Set([1]));
    expect(apps.logs.lines.some((line) => line.includes('pooler in transaction mode'))).toBe(warned);
    const findings = await app.get(OperatorClient).doctor();
    expect(findings).toContainEqual(expect.objectContaining({ check: 'pooler', level: 'info' }));
  });
});
