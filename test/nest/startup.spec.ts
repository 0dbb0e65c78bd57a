import { Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import pg from 'pg';
import { DataSource } from 'typeorm';
import {
  CycloneError,
  CycloneModule,
  InvalidOptionError,
  SchemaVersionError,
  StartupError,
  Step,
  UnsafeIsolationError,
  WorkerPool,
  WorkflowClient,
  type CycloneOptions,
  type CycloneOptionsFactory,
} from 'nestjs-cyclone';
import { Applications } from './app.fixture.js';

let apps: Applications;
beforeAll(async () => {
  apps = await Applications.create();
});
afterEach(() => apps.closeAll());
afterAll(() => apps.end());

it.each([true, null, 'yes'])('says how to switch the worker off when `worker` is %s (R22)', async (worker) => {
  const error = await apps.refusal({ cyclone: { worker: worker as never } });
  expect(error.message).toContain('worker must be an object of options, or false');
});

const tablesIn = (schema: string) =>
  apps.sql(`select 1 from information_schema.tables where table_schema = $1 and table_name = 'cyclone_runs'`, [schema]);

describe('the start is refused (R22)', () => {
  it('with every invalid and every unknown option at once', async () => {
    const error = await apps.refusal({
      cyclone: {
        schema: 'x'.repeat(64),
        migrationsRun: 'yes' as never,
        scheme: 'typo',
        worker: { leaseTtl: '5 parsecs' as never, pollInterval: 0, queues: { a: 0 }, autostart: true } as never,
        defaults: { priority: 1.5, retry: { maxAttempts: 0 }, queues: 'x' } as never,
        limits: { maxNodes: 0, maxDepth: 3 } as never,
        onStepEvent: 'log' as never,
      } as CycloneOptions,
    });
    expect(StartupError.is(error)).toBe(true);
    const options = (error as StartupError).problems.map((problem) => (problem as InvalidOptionError).option);
    expect(options.toSorted()).toEqual([
      'defaults.queues',
      'limits.maxDepth',
      'limits.maxNodes',
      'migrationsRun',
      'onStepEvent',
      'priority of defaults',
      'retry.maxAttempts of defaults',
      'schema',
      'scheme',
      'worker.autostart',
      'worker.leaseTtl',
      'worker.pollInterval',
      'worker.queues.a',
    ]);
    for (const option of options) expect(error.message).toContain(option);
  });

  it('with problems of options, handlers and database in one list, and migrates nothing then', async () => {
    @Injectable()
    class Twice {
      @Step({ name: 'same' }) one(i: number): number {
        return i;
      }
      @Step({ name: 'same', timeout: 0 }) two(i: number): number {
        return i;
      }
    }
    const error = await apps.refusal({
      imports: [
        apps.typeorm({ poolSize: 1 }),
        CycloneModule.forRoot({ schema: 'untouched', migrationsRun: true, limits: { maxNodes: 0 } }),
      ],
      providers: [Twice],
    });
    expect((error as StartupError).problems.map(({ message }) => message)).toEqual([
      expect.stringContaining('limits.maxNodes'),
      expect.stringContaining('timeout of Twice.two'),
      '"same" is declared by Twice.one and Twice.two. Give one of them another name with the option `name`.',
      expect.stringContaining('pool of 1'),
    ]);
    expect(await tablesIn('untouched')).toEqual([]);
    expect(await tablesIn('public')).toEqual([]);
  });

  it('without the tables, and says how to make them', async () => {
    const error = await apps.refusal({ cyclone: { schema: 'nowhere', migrationsRun: false } });
    expect(SchemaVersionError.is(error)).toBe(true);
    expect(error.message).toMatch(/"nowhere".*npx nestjs-cyclone migrate --schema nowhere.*migrationsRun: true/s);
  });

  it('under REPEATABLE READ as the default, of the database or of the role', async () => {
    await apps.sql(`alter database ${apps.database.name} set default_transaction_isolation = 'repeatable read'`);
    try {
      const error = await apps.refusal({});
      expect(UnsafeIsolationError.is(error)).toBe(true);
    } finally {
      await apps.sql(`alter database ${apps.database.name} reset default_transaction_isolation`);
    }
  });

  it('with a pool that the worker would starve, and says what to set (C14)', async () => {
    const error = await apps.refusal({
      imports: [apps.typeorm({ poolSize: 2 }), CycloneModule.forRoot({ migrationsRun: true })],
    });
    expect(InvalidOptionError.is(error)).toBe(true);
    expect(error.message).toMatch(/pool of 2.*poolSize.*worker: false/s);
  });

  it('with a DataSource of another database', async () => {
    const mysql = new DataSource({ type: 'mysql', driver: {}, database: 'x' } as never);
    const error = await apps.refusal({ imports: [CycloneModule.forRoot({ dataSource: mysql })] });
    expect(error.message).toMatch(/type "postgres"; this one is of type "mysql"/);
  });

  it('with pg-native, which TypeORM takes wherever it is installed, and says how to pass the other driver (F11)', async () => {
    class NativeClient extends pg.Client {
      readonly native = {}; // how its clients are told from those of the JavaScript driver
    }
    const native = Object.create(pg, { Client: { value: NativeClient } }) as typeof pg;
    const driver = Object.create(pg, { native: { value: native } }) as typeof pg;
    const dataSource = (chosen: typeof pg) =>
      new DataSource({ type: 'postgres', url: apps.database.url, driver: chosen, nativeDriver: {} }).initialize();

    const taken = await dataSource(driver);
    const error = await apps.refusal({ imports: [CycloneModule.forRoot({ migrationsRun: true, dataSource: taken })] });
    await taken.destroy();
    expect(InvalidOptionError.is(error)).toBe(true);
    expect(error.message).toMatch(
      /pg-native.*Uninstall pg-native.*Object\.create\(pg, { native: { value: undefined } }\)/,
    );

    // What it says to write works.
    const remedied = await dataSource(Object.create(driver, { native: { value: undefined } }) as typeof pg);
    const app = await apps.start({ imports: [CycloneModule.forRoot({ migrationsRun: true, dataSource: remedied })] });
    await app.close();
    await remedied.destroy();
  });

  it('with a DataSource that is not initialized, none, or one of a name that nobody provides', async () => {
    const sleeping = new DataSource({ type: 'postgres', url: apps.database.url });
    const [cold, none, unknown] = [
      await apps.refusal({ imports: [CycloneModule.forRoot({ dataSource: sleeping })] }),
      await apps.refusal({ imports: [CycloneModule.forRoot({ limits: { maxNodes: 0 } })] }),
      await apps.refusal({ imports: [apps.typeorm(), CycloneModule.forRoot({ dataSource: 'billing' })] }),
    ];
    expect(cold.message).toMatch(/dataSource must be initialized/);
    expect(none.message).toMatch(/for 2 reasons:.*limits\.maxNodes.*no module provides a default DataSource/s);
    expect(unknown.message).toMatch(/names "billing", but no module provides "billingDataSource"/);
  });

  it('when the database does not answer, with the reason', async () => {
    const dataSource = await new DataSource({ type: 'postgres', url: apps.database.url }).initialize();
    const dead = Object.create(dataSource, {
      query: { value: () => Promise.reject(new Error('ECONNREFUSED')) },
    }) as DataSource;
    const error = await apps.refusal({ imports: [CycloneModule.forRoot({ dataSource: dead, schema: 'nowhere' })] });
    await dataSource.destroy();
    expect(CycloneError.is(error)).toBe(true);
    expect(error.message).toContain('ECONNREFUSED');
  });

  it('with two modules of one name', async () => {
    const error = await apps.refusal({
      imports: [
        apps.typeorm(),
        CycloneModule.forRoot({ migrationsRun: true, schema: 'one' }),
        CycloneModule.forRoot({ migrationsRun: true, schema: 'two' }),
      ],
    });
    expect(error.message).toMatch(/imports 2 times the unnamed CycloneModule/);
  });

  it('before the hooks of the application run', async () => {
    const ran: string[] = [];
    @Injectable()
    class Hooks {
      onModuleInit(): void {
        ran.push('onModuleInit');
      }
    }
    await apps.refusal({ cyclone: { limits: { maxNodes: 0 } }, providers: [Hooks] });
    expect(ran).toEqual([]);
  });
});

describe('migrationsRun', () => {
  it('applies what is missing, into whatever schema, before the hooks of the application', async () => {
    const schema = `it's "awkward" \\ $1 ünï`;
    let count: unknown;
    @Injectable()
    class Hooks {
      constructor(private readonly dataSource: DataSource) {}
      async onModuleInit(): Promise<void> {
        const quoted = `"${schema.replaceAll('"', '""')}"`;
        count = await this.dataSource.query(`select count(*)::int from ${quoted}.cyclone_runs`);
      }
    }
    await apps.start({ cyclone: { schema, worker: false }, providers: [Hooks] });
    expect(count).toEqual([{ count: 0 }]);
    expect(apps.logs.lines).toContainEqual(expect.stringMatching(/^log Cyclone Applied 0001_/));
  });
});

describe('a start that succeeds', () => {
  @Injectable()
  class Work {
    @Step({ queue: 'slow' }) crawl(i: number): number {
      return i;
    }
    @Step() walk(i: number): number {
      return i;
    }
  }

  it('warns of queues that this worker does not serve', async () => {
    await apps.start({ cyclone: { worker: { queues: { default: 1 } } }, providers: [Work] });
    expect(apps.logs.lines.filter((line) => line.startsWith('warn'))).toEqual([
      'warn Cyclone This worker does not serve the queue "slow" of Work.crawl: worker.queues does not name it.',
    ]);
  });

  it('serves every queue that a handler or the defaults name, 10 slots each', async () => {
    const app = await apps.start({ cyclone: { defaults: { queue: 'usual' } }, providers: [Work] });
    const slots = { slots: 10, taken: 0 };
    expect(app.get(WorkerPool).health()?.queues).toEqual({ usual: slots, slow: slots });
  });

  it('and its end survive tests that override what they inject', async () => {
    const builder = Test.createTestingModule({
      imports: [apps.typeorm(), CycloneModule.forRoot({ migrationsRun: true })],
      providers: [Work],
    }).setLogger(apps.logs);
    const app = await builder
      .overrideProvider(WorkflowClient)
      .useValue({ submit: () => 'faked' })
      .overrideProvider(WorkerPool)
      .useValue({})
      .compile();
    await app.init();
    expect(app.get<{ submit(): string }>(WorkflowClient).submit()).toBe('faked');
    await app.close();
    expect(apps.logs.lines.filter((line) => /^(warn|error)/.test(line))).toEqual([]);
  });
});

describe('forRootAsync', () => {
  @Injectable()
  class Settings {
    readonly schema = 'by_settings';
  }
  @Module({ providers: [Settings], exports: [Settings] })
  class SettingsModule {}
  @Injectable()
  class Factory implements CycloneOptionsFactory {
    async createCycloneOptions(): Promise<CycloneOptions> {
      return { schema: 'by_class', migrationsRun: true, worker: false };
    }
  }
  @Module({ providers: [Factory], exports: [Factory] })
  class FactoryModule {}

  it('takes a factory with injections, a class, or an existing provider', async () => {
    await apps.start({
      imports: [
        apps.typeorm(),
        CycloneModule.forRootAsync({
          imports: [SettingsModule],
          inject: [Settings],
          useFactory: async ({ schema }: Settings) => ({ schema, migrationsRun: true, worker: false as const }),
        }),
        CycloneModule.forRootAsync({ name: 'by-class', useClass: Factory }),
        CycloneModule.forRootAsync({ name: 'existing', imports: [FactoryModule], useExisting: Factory }),
      ],
    });
    expect(await tablesIn('by_settings')).toHaveLength(1);
    expect(await tablesIn('by_class')).toHaveLength(1);
  });

  it('refuses a name that the factory makes, and says where it belongs', async () => {
    const error = await apps.refusal({
      imports: [
        apps.typeorm(),
        CycloneModule.forRootAsync({ useFactory: () => ({ name: 'archive', migrationsRun: true }) }),
      ],
    });
    expect(error.message).toMatch(
      /name must stand beside the factory, as in forRootAsync\(\{ name: "archive", useFactory \}\)/,
    );
  });

  it('waits for a DataSource that is made asynchronously, of whatever module and listed in whatever order', async () => {
    @Module({
      providers: [
        {
          provide: 'lateDataSource',
          useFactory: async () => {
            await new Promise((resolve) => setImmediate(resolve));
            return new DataSource({ type: 'postgres', url: apps.database.url }).initialize();
          },
        },
      ],
    })
    class Private {}
    const options = { dataSource: 'late', migrationsRun: true, worker: false } as const;
    for (const imports of [
      [Private, CycloneModule.forRoot(options)],
      [CycloneModule.forRoot(options), Private],
    ]) {
      const app = await apps.start({ imports });
      expect(app.get(WorkflowClient)).toBeInstanceOf(WorkflowClient);
      await app.get<DataSource>('lateDataSource', { strict: false }).destroy();
    }
  });
});
