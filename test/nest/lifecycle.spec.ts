import { Controller, Get, Global, Injectable, Module, type INestApplicationContext } from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import { Interval, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import { TypeOrmModule } from '@nestjs/typeorm';
import {
  Action,
  CycloneModule,
  DuplicateHandlerError,
  InvalidOptionError,
  StartupError,
  Step,
  WorkerPool,
  WorkflowClient,
  stepsOf,
  type ActionHandle,
  type StepContext,
} from 'nestjs-cyclone';
import { startPostgres } from '../support/postgres.js';
import { Applications } from './app.fixture.js';

/** What happened, in order. */
let trace: string[] = [];
/** Resolves when the test lets a handler end. */
let open: () => void;
let gate: Promise<void>;
/** Resolves when a handler has begun. */
let begun: () => void;
let handlerBegan: Promise<void>;

@Injectable()
class Work {
  @Step() fast(name: string): string {
    trace.push(`handler ${name}`);
    return name;
  }
  @Action() async slow(name: string): Promise<void> {
    trace.push(`handler ${name} begins`);
    begun();
    await gate;
    trace.push(`handler ${name} ends`);
  }
}
const work = stepsOf(Work);

const soon = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A provider whose hooks take their time and say when they begin and end. */
function slowHooks(name: string) {
  const take = async (hook: string): Promise<void> => {
    trace.push(`${name} ${hook} begins`);
    for (let i = 0; i < 20; i++) await soon();
    trace.push(`${name} ${hook} ends`);
  };
  @Injectable()
  class Hooks {
    onModuleInit = (): Promise<void> => take('init');
    onApplicationBootstrap = (): Promise<void> => take('bootstrap');
    onModuleDestroy = (): Promise<void> => take('destroy');
    beforeApplicationShutdown = (): Promise<void> => take('before shutdown');
  }
  return Hooks;
}

let apps: Applications;
beforeAll(async () => {
  apps = await Applications.create();
});
beforeEach(() => {
  trace = [];
  gate = new Promise((resolve) => (open = resolve));
  handlerBegan = new Promise((resolve) => (begun = resolve));
});
afterEach(async () => {
  open();
  await apps.closeAll();
  await apps.sql('truncate cyclone_runs, cyclone_steps cascade');
});
afterAll(() => apps.end());

const submitFrom = (app: INestApplicationContext, handle: ActionHandle<string>, name: string) =>
  app.get(WorkflowClient).enqueue(handle, name);

describe('the order of hooks (C10)', () => {
  it.each(['first', 'last'] as const)(
    'lets handlers begin after every bootstrap hook and ends them before any destroy hook, with CycloneModule imported %s',
    async (place) => {
      @Module({ providers: [slowHooks('deep')] })
      class Deep {}
      @Module({ imports: [Deep], providers: [Work, slowHooks('feature')] })
      class Feature {}
      const cyclone = CycloneModule.forRoot({ migrationsRun: true });
      @Global()
      @Module({ providers: [slowHooks('global')] })
      class Everywhere {}
      const rest = [apps.typeorm(), Feature, Everywhere];

      @Injectable()
      class Early {
        constructor(private readonly client: WorkflowClient) {}
        async onModuleInit(): Promise<void> {
          await this.client.enqueue(work.fast, 'early');
        }
      }
      const app = await apps.start({
        imports: place === 'first' ? [cyclone, ...rest] : [...rest, cyclone],
        providers: [slowHooks('root'), Early],
      });
      const run = await submitFrom(app, work.slow, 'late');
      await handlerBegan;
      const closed = app.close();
      await soon();
      expect(trace.at(-1)).toBe('handler late begins');
      open();
      await closed;

      const hooks = trace.filter((line) => !line.startsWith('handler'));
      const lastBootstrap = trace.findLastIndex((line) => line.endsWith('bootstrap ends'));
      const firstDestroy = trace.findIndex((line) => line.endsWith('destroy begins'));
      expect(hooks.filter((line) => line.endsWith('bootstrap ends'))).toHaveLength(4);
      expect(hooks.filter((line) => line.endsWith('destroy begins'))).toHaveLength(4);
      expect(trace.slice(lastBootstrap + 1, firstDestroy).toSorted()).toEqual([
        'handler early',
        'handler late begins',
        'handler late ends',
      ]);
      expect(await apps.sql('select state from cyclone_runs where id = $1', [run.id])).toEqual([
        { state: 'completed' },
      ]);
    },
  );

  it('gives handlers that drain the whole application: they submit, and what they submit stays (R20)', async () => {
    @Injectable()
    class Parent {
      constructor(private readonly client: WorkflowClient) {}
      @Action() async handOn(name: string): Promise<void> {
        begun();
        await gate;
        await this.client.enqueue(work.fast, name);
      }
    }
    const app = await apps.start({ cyclone: {}, providers: [Work, Parent] });
    await submitFrom(app, stepsOf(Parent).handOn, 'child');
    await handlerBegan;
    const closed = app.close();
    open();
    await closed;
    const runs = await apps.sql('select workflow, state from cyclone_runs order by id');
    expect(runs[0]).toEqual({ workflow: 'handOn', state: 'completed' });
    expect(runs[1]).toMatchObject({ workflow: 'fast' });
  });

  it('commits what five handlers are doing when the application closes, and logs no error (S13)', async () => {
    @Injectable()
    class Writers {
      begun = 0;
      @Action() async write(_index: number, ctx: StepContext): Promise<void> {
        const tx = await ctx.completionTx();
        if (++this.begun === 5) begun();
        await gate;
        await tx.query('select 1');
      }
    }
    const app = await apps.start({ providers: [Writers] });
    await app.get(WorkflowClient).enqueueMany(stepsOf(Writers).write, [1, 2, 3, 4, 5]);
    await handlerBegan;
    const closed = app.close();
    open();
    await closed;
    expect(await apps.sql('select state, count(*)::int from cyclone_runs group by 1')).toEqual([
      { state: 'completed', count: 5 },
    ]);
    expect(apps.logs.lines.filter((line) => /^(warn|error)/.test(line))).toEqual([]);
  });
});

describe('starting and stopping (S23)', () => {
  it('is harmless when the application closes before it started, or twice', async () => {
    const app = await apps.start({ cyclone: { worker: { autoStart: false } }, providers: [Work] });
    const pool = app.get(WorkerPool);
    expect(pool.health()).toBeUndefined();
    await pool.stop();
    await Promise.all([app.close(), app.close()]);
    await app.close();
    await pool.start();
    expect(pool.health()).toBeUndefined();
  });

  it('does not start a worker when the application closes during its bootstrap', async () => {
    let app: INestApplicationContext | undefined;
    let closed: Promise<void> | undefined;
    @Injectable()
    class Impatient {
      onApplicationBootstrap(): void {
        closed = app?.close();
      }
    }
    await apps.start({ providers: [Work, Impatient] }, (compiled) => (app = compiled));
    await closed;
    expect(app?.get(WorkerPool).health()).toBeUndefined();
    await apps.noSessions();
  });

  it('is the application’s with autoStart: false, again and again', async () => {
    const app = await apps.start({ cyclone: { worker: { autoStart: false } }, providers: [Work] });
    const pool = app.get(WorkerPool);
    const client = app.get(WorkflowClient);
    for (const name of ['one', 'two']) {
      const run = await client.enqueue(work.fast, name);
      await Promise.all([pool.start(), pool.start()]);
      expect(await run.result()).toBe(name);
      expect(pool.health()).toMatchObject({ state: 'running' });
      await Promise.all([pool.stop(), pool.stop()]);
      expect(pool.health()).toBeUndefined();
    }
    const stopping = pool.stop();
    await pool.start();
    await stopping;
    expect(pool.health()).toMatchObject({ state: 'running' });
  });

  it('leaves no session and no handle behind, twenty times over (S14)', async () => {
    const handles = (): string[] =>
      process.getActiveResourcesInfo().filter((type) => /TCP|Timeout|MessagePort|Worker/.test(type));
    let before: number | undefined;
    for (let i = 0; i < 20; i++) {
      const app = await apps.start({ providers: [Work] });
      expect(await (await app.get(WorkflowClient).enqueue(work.fast, `${i}`)).result()).toBe(`${i}`);
      await app.close();
      await apps.noSessions();
      before ??= handles().length;
    }
    while (handles().length > (before as number)) await soon(); // closed sockets go a moment later
  }, 180_000);

  it('opens no connection of its own with worker: false, and refuses start()', async () => {
    const app = await apps.start({ cyclone: { worker: false }, providers: [Work] });
    await app.get(WorkflowClient).enqueue(work.fast, 'for others');
    const sessions = await apps.sessions();
    expect(await apps.sql('select 1 from cyclone_workers')).toEqual([]);
    expect(new Set(sessions)).toEqual(new Set(['application']));
    await expect(app.get(WorkerPool).start()).rejects.toThrow(InvalidOptionError);
    expect(app.get(SchedulerRegistry).getIntervals()).toEqual([]);
  });
});

describe('the database', () => {
  it('may come up after the application: it starts when TypeORM has reached it, and works (S39)', async () => {
    const server = await startPostgres();
    await server.stop();
    const typeorm = TypeOrmModule.forRoot({
      type: 'postgres',
      url: server.url,
      retryAttempts: 1_000,
      retryDelay: 50,
      verboseRetryLog: false,
    });
    const starting = apps.start({
      imports: [typeorm, CycloneModule.forRoot({ migrationsRun: true })],
      providers: [Work],
    });
    while (!apps.logs.lines.some((line) => line.includes('Unable to connect'))) await soon();
    await server.start();
    const app = await starting;
    expect(await (await app.get(WorkflowClient).enqueue(work.fast, 'patient')).result()).toBe('patient');
    await app.close();
    await server.destroy();
  });
});

describe('an open request that waits for a run', () => {
  it('is answered when the application closes, so that the server can close', async () => {
    @Controller()
    class Waiting {
      constructor(private readonly client: WorkflowClient) {}
      @Get() async wait(): Promise<string> {
        const run = await this.client.enqueue(work.fast, 'nobody executes it');
        begun();
        return run.result();
      }
    }
    const builder = Test.createTestingModule({
      imports: [apps.typeorm(), CycloneModule.forRoot({ migrationsRun: true, worker: false })],
      controllers: [Waiting],
    }).setLogger(apps.logs);
    const app = (await builder.compile()).createNestApplication();
    await app.listen(0);
    const answer = fetch(await app.getUrl());
    await handlerBegan;
    await app.close();
    expect((await answer).status).toBe(500);
  });
});

describe('what hooks of the application load', () => {
  @Module({ providers: [Work] })
  class Lazy {}

  it('is served like everything else (S24)', async () => {
    @Injectable()
    class Loader {
      constructor(private readonly loader: LazyModuleLoader) {}
      async onApplicationBootstrap(): Promise<void> {
        await this.loader.load(() => Lazy);
      }
    }
    const app = await apps.start({ providers: [Loader] });
    expect(await (await app.get(WorkflowClient).enqueue(work.fast, 'lazy')).result()).toBe('lazy');
  });

  it('is checked like everything else', async () => {
    @Injectable()
    class Loader {
      constructor(private readonly loader: LazyModuleLoader) {}
      async onApplicationBootstrap(): Promise<void> {
        await this.loader.load(() => Lazy);
      }
    }
    const error = await apps.refusal({ providers: [Loader, Work] });
    expect(error.message).toMatch(
      /"fast" is declared by Work\.fast \(provided in .*\) and Work\.fast \(provided in Lazy\)/,
    );
    expect(DuplicateHandlerError.is((error as StartupError).problems[0])).toBe(true);
  });
});

describe('housekeeping', () => {
  const tick = (app: INestApplicationContext): string[] => app.get(SchedulerRegistry, { strict: false }).getIntervals();

  it('shows in the SchedulerRegistry as cyclone:tick, without ScheduleModule', async () => {
    const app = await apps.start({ providers: [Work] });
    expect(tick(app)).toEqual(['cyclone:tick']);
    await (await app.get(WorkflowClient).enqueue(work.fast, 'once')).result();
    expect(await apps.sql('select version from cyclone_workers')).toEqual([{ version: '0.1.0' }]);
    await app.get(WorkerPool).stop();
    expect(tick(app)).toEqual([]);
  });

  it.each(['first', 'last'] as const)(
    'shows in the registry of the application’s ScheduleModule, imported %s, beside its own timers',
    async (place) => {
      let registry: SchedulerRegistry | undefined;
      let ticks = 0;
      @Injectable()
      class Scheduled {
        constructor(injected: SchedulerRegistry) {
          registry = injected;
        }
        @Interval('mine', 3_600_000) run(): void {
          ticks++;
        }
      }
      const schedule = ScheduleModule.forRoot();
      const cyclone = [
        CycloneModule.forRoot({ migrationsRun: true }),
        CycloneModule.forRoot({ name: 'archive', schema: 'archive', migrationsRun: true }),
      ];
      const app = await apps.start({
        imports: [apps.typeorm(), ...(place === 'first' ? [schedule, ...cyclone] : [...cyclone, schedule])],
        providers: [Work, Scheduled],
      });
      expect(tick(app)).toEqual(expect.arrayContaining(['mine', 'cyclone:tick', 'cyclone:tick:archive']));
      expect(registry?.getIntervals().toSorted()).toEqual(['cyclone:tick', 'cyclone:tick:archive', 'mine']);
      expect(ticks).toBe(0);
      await app.close();
      expect(registry?.getIntervals()).toEqual([]);
    },
  );
});
