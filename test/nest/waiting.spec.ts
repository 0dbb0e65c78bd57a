import { Injectable, Module, type OnApplicationBootstrap } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { CycloneModule, RunCancelledError, Step, WorkflowClient, stepsOf, type RunHandle } from 'nestjs-cyclone';
import { Applications } from './app.fixture.js';

let apps: Applications;
beforeAll(async () => {
  apps = await Applications.create();
});
afterEach(() => apps.closeAll());
afterAll(() => apps.end());

/** Resolves with the first line of the log that fits. */
async function logged(pattern: RegExp): Promise<string> {
  for (;;) {
    const line = apps.logs.lines.find((it) => pattern.test(it));
    if (line !== undefined) return line;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

it('a DataSource whose factory waits for WorkflowClient is named before long (R42, F12)', async () => {
  @Injectable()
  class Settings {
    constructor(readonly workflows: WorkflowClient) {}
  }
  @Module({ providers: [Settings], exports: [Settings] })
  class SettingsModule {}
  const typeorm = TypeOrmModule.forRootAsync({
    imports: [SettingsModule],
    inject: [Settings],
    useFactory: () => ({ type: 'postgres' as const, url: apps.database.url }),
  });
  void apps.start({ imports: [typeorm, CycloneModule.forRoot()] }); // it never starts
  expect(await logged(/waiting for DataSource/)).toMatch(
    /^warn Cyclone .*TypeOrmCoreModule.*forRootAsync.*needs WorkflowClient, both wait for ever/,
  );
});

it('a hook that waits for a run which only the worker of this process could end is told so (R42, F13)', async () => {
  let waiting: RunHandle<number> | undefined;
  let caught: unknown;
  @Injectable()
  class Hasty implements OnApplicationBootstrap {
    constructor(private readonly workflows: WorkflowClient) {}
    @Step() work(input: number): number {
      return input;
    }
    async onApplicationBootstrap(): Promise<void> {
      waiting = await this.workflows.enqueue(stepsOf(Hasty).work, 1);
      caught = await waiting.result().catch((error: unknown) => error);
    }
  }
  const started = apps.start({ providers: [Hasty] });
  const line = await logged(/Somebody has waited/);
  expect(line).toContain(`Somebody has waited 5 s for run ${waiting?.id}`);
  expect(line).toMatch(/worker of this process starts only when every onModuleInit and onApplicationBootstrap/);
  await waiting?.cancel();
  const app = await started;
  expect(RunCancelledError.is(caught)).toBe(true);

  // Once the worker has started there is nothing to say.
  const run = await app.get(WorkflowClient).enqueue(stepsOf(Hasty).work, 2);
  expect(await run.result()).toBe(2);
});
