import { Injectable } from '@nestjs/common';
import { SchedulerRegistry } from '@nestjs/schedule';
import {
  InvalidOptionError,
  OperatorClient,
  Step,
  WorkerPool,
  WorkflowClient,
  stepsOf,
  type StartupError,
} from 'nestjs-cyclone';
import { Applications } from './app.fixture.js';

@Injectable()
class Work {
  @Step({ retention: 0 }) brief(name: string): string {
    return name;
  }
  @Step() lasting(name: string): string {
    return name;
  }
}
const work = stepsOf(Work);

let apps: Applications;
beforeAll(async () => {
  apps = await Applications.create();
});
afterEach(async () => {
  await apps.closeAll();
  await apps.sql('truncate cyclone_runs, cyclone_steps cascade');
  await apps.sql(`update cyclone_marks set at = '-infinity'`);
});
afterAll(() => apps.end());

const intervals = (app: { get(token: typeof SchedulerRegistry, o: object): SchedulerRegistry }): string[] =>
  app.get(SchedulerRegistry, { strict: false }).getIntervals();
const gone = async (...ids: string[]): Promise<void> => {
  while ((await apps.sql('select 1 from cyclone_runs where id = any($1)', [ids])).length > 0);
};

describe('the option retention (R35)', () => {
  it('shows its sweep in the SchedulerRegistry as cyclone:retention while the worker runs', async () => {
    const app = await apps.start({ cyclone: { retention: {} }, providers: [Work] });
    expect(intervals(app).toSorted()).toEqual(['cyclone:retention', 'cyclone:tick']);
    await app.get(WorkerPool).stop();
    expect(intervals(app)).toEqual([]);
  });

  it('deletes what its steps no longer keep, also without a defaultAge', async () => {
    const app = await apps.start({ cyclone: { retention: { interval: 100 } }, providers: [Work] });
    const client = app.get(WorkflowClient);
    const lasting = await client.enqueue(work.lasting, 'a');
    await lasting.result();
    const brief = await client.enqueue(work.brief, 'b');
    await gone(brief.id);
    expect(await apps.sql('select id from cyclone_runs')).toEqual([{ id: lasting.id }]);
  });

  it('deletes by its defaultAge what names no retention', async () => {
    const app = await apps.start({ cyclone: { retention: { interval: 100, defaultAge: '1ms' } }, providers: [Work] });
    await gone((await app.get(WorkflowClient).enqueue(work.lasting, 'a')).id);
    expect(await apps.sql('select 1 from cyclone_steps')).toEqual([]);
  });

  it('counts for a purge by call too, which may name another age', async () => {
    const app = await apps.start({ cyclone: { retention: { defaultAge: '90d' } }, providers: [Work] });
    await (await app.get(WorkflowClient).enqueue(work.lasting, 'a')).result();
    const operator = app.get(OperatorClient);
    expect(await operator.purgeTerminalRuns({ all: true, dryRun: false })).toBe(0);
    await apps.sql(`update cyclone_runs set finished_at = finished_at - interval '91 days'`);
    expect(await operator.purgeTerminalRuns({ defaultAge: '92d', dryRun: true })).toBe(0);
    expect(await operator.purgeTerminalRuns({ all: true, dryRun: false })).toBe(1);
  });

  it('deletes nothing in a process without a worker, and nothing when it is not set', async () => {
    const submitting = await apps.start({ cyclone: { worker: false, retention: {} }, providers: [Work] });
    expect(intervals(submitting)).toEqual([]);
    const app = await apps.start({ providers: [Work] });
    expect(intervals(app)).toEqual(['cyclone:tick']);
  });

  it('refuses the start with every wrong and every unknown key at once (R22)', async () => {
    const error = await apps.refusal({
      cyclone: { retention: { defaultAge: -1, interval: 'weekly', batchSize: 0, batch: 5 } as never },
    });
    expect(
      (error as StartupError).problems.map((problem) => (problem as InvalidOptionError).option).toSorted(),
    ).toEqual(['retention.batch', 'retention.batchSize', 'retention.defaultAge', 'retention.interval']);
    expect(InvalidOptionError.is(await apps.refusal({ cyclone: { retention: '30d' as never } }))).toBe(true);
  });
});
