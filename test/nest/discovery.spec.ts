import { Controller, Inject, Injectable, Module, Scope, type ModuleMetadata } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, LazyModuleLoader, REQUEST } from '@nestjs/core';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  Action,
  DuplicateHandlerError,
  InvalidOptionError,
  OnStepEvent,
  Step,
  UnknownHandlerError,
  Workflow,
  stepsOf,
  type StepContext,
  type WorkflowBuilder,
} from 'nestjs-cyclone';
import { CycloneExplorer } from '#cyclone/nest/cyclone.explorer.js';
import { CycloneNames } from '#cyclone/nest/cyclone-names.js';
import type { Discovery } from '#cyclone/nest/discovery.js';

@Injectable()
class Charging {
  @Step({ queue: 'money' }) charge(input: number): string {
    return `charged ${input}`;
  }
  @Action() async receipt(_input: number): Promise<void> {}
  helper(): string {
    return 'no handler';
  }
}

let app: TestingModule | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

async function start(
  metadata: ModuleMetadata,
  override?: (builder: ReturnType<typeof Test.createTestingModule>) => void,
) {
  const builder = Test.createTestingModule({ ...metadata, imports: [DiscoveryModule, ...(metadata.imports ?? [])] });
  override?.(builder);
  app = await builder.compile();
  await app.init();
  return app;
}

function exploreAs(name: string | undefined, known: readonly (string | undefined)[] = [undefined]): Discovery {
  const names = new CycloneNames();
  for (const each of known) names.add(each);
  return new CycloneExplorer(name, (app as TestingModule).get(DiscoveryService), names, { priority: 3 }).explore();
}

async function explore(metadata: ModuleMetadata, override?: Parameters<typeof start>[1]): Promise<Discovery> {
  await start(metadata, override);
  return exploreAs(undefined);
}

const kinds = (found: Discovery): string[] => [...found.handlers.keys()].toSorted();
const messages = (found: Discovery): string[] => found.problems.map(({ message }) => message);

describe('handlers are found in providers', () => {
  it.each<[string, ModuleMetadata['providers']]>([
    ['a class', [Charging]],
    ['useClass under a text', [{ provide: 'charging', useClass: Charging }]],
    ['useFactory under its class', [{ provide: Charging, useFactory: async () => new Charging() }]],
    ['useFactory under a symbol', [{ provide: Symbol('charging'), useFactory: () => new Charging() }]],
    ['useValue', [{ provide: 'charging', useValue: new Charging() }]],
    ['a class and an alias of it', [Charging, { provide: 'alias', useExisting: Charging }]],
    [
      'a class and a factory that hands the same instance on',
      [Charging, { provide: 'again', useFactory: (it: Charging) => it, inject: [Charging] }],
    ],
    ['a request-scoped class', [{ provide: Charging, useClass: Charging, scope: Scope.REQUEST }]],
    [
      'a request-scoped factory under its class',
      [{ provide: Charging, useFactory: () => new Charging(), scope: Scope.REQUEST }],
    ],
    ['a transient class', [{ provide: Charging, useClass: Charging, scope: Scope.TRANSIENT }]],
  ])('of the form %s, once (S25)', async (_form, providers) => {
    const found = await explore({ providers: providers ?? [] });
    expect(messages(found)).toEqual([]);
    expect(kinds(found)).toEqual(['charge', 'receipt']);
    expect(found.handlers.get('charge')).toMatchObject({
      where: 'Charging.charge',
      metadata: { nodeType: 'step' },
      options: { queue: 'money', priority: 3 },
    });
  });

  it('of modules that were loaded lazily before the end of the bootstrap (S24)', async () => {
    @Module({ providers: [Charging] })
    class Lazy {}
    @Injectable()
    class Loader {
      constructor(private readonly loader: LazyModuleLoader) {}
      async onModuleInit(): Promise<void> {
        await this.loader.load(() => Lazy);
      }
    }
    expect(kinds(await explore({ providers: [Loader] }))).toEqual(['charge', 'receipt']);
  });

  it('once, when a method is inherited, and with the options of the override that is decorated again', async () => {
    abstract class Base {
      @Step() inherited(input: number): number {
        return input;
      }
      @Step({ queue: 'base' }) overridden(input: number): number {
        return input;
      }
    }
    @Injectable()
    class Derived extends Base {
      @Step({ queue: 'derived' }) override overridden(input: number): number {
        return input + 1;
      }
    }
    const found = await explore({ providers: [Derived] });
    expect(messages(found)).toEqual([]);
    expect(kinds(found)).toEqual(['inherited', 'overridden']);
    expect(found.handlers.get('inherited')).toMatchObject({
      where: 'Derived.inherited',
      options: { queue: 'default' },
    });
    expect(found.handlers.get('overridden')?.options.queue).toBe('derived');
  });

  it('of a class that is provided for an abstract one', async () => {
    abstract class Port {
      abstract charge(input: number): string;
    }
    expect(kinds(await explore({ providers: [{ provide: Port, useClass: Charging }] }))).toEqual(['charge', 'receipt']);
  });

  it('without touching getters or values without a class', async () => {
    @Injectable()
    class Touchy {
      get connection(): never {
        throw new Error('a getter was fired');
      }
      @Step() fine(input: number): number {
        return input;
      }
    }
    const found = await explore({
      providers: [
        Touchy,
        { provide: 'null', useValue: null },
        { provide: 'bare', useValue: Object.create(null) as object },
        { provide: 'text', useValue: 'text' },
        { provide: 'class', useValue: Charging },
        { provide: 'none', useFactory: () => undefined },
        { provide: 'handles', useValue: stepsOf(Charging) },
      ],
    });
    expect(kinds(found)).toEqual(['fine']);
  });
});

describe('providers that a test overrides', () => {
  it('serve the steps of the class that they stand in for', async () => {
    const fake = { charge: () => 'faked', receipt: async () => undefined };
    const found = await explore({ providers: [Charging] }, (builder) => {
      builder.overrideProvider(Charging).useValue(fake);
    });
    expect(kinds(found)).toEqual(['charge', 'receipt']);
    expect(found.handlers.get('charge')).toMatchObject({ where: 'Charging.charge', host: { instance: fake } });
  });

  it('may be a subclass that decorates nothing', async () => {
    class Fake extends Charging {
      override charge(): string {
        return 'faked';
      }
    }
    const found = await explore({ providers: [Charging] }, (builder) => {
      builder.overrideProvider(Charging).useClass(Fake);
    });
    expect(messages(found)).toEqual([]);
    expect(kinds(found)).toEqual(['charge', 'receipt']);
  });

  it('may leave methods out, which is said but is no error', async () => {
    const found = await explore({ providers: [Charging] }, (builder) => {
      builder.overrideProvider(Charging).useValue({ charge: () => 'faked' });
    });
    expect(messages(found)).toEqual([]);
    expect(kinds(found)).toEqual(['charge']);
    expect(found.warnings).toEqual([expect.stringMatching(/^Charging\.receipt is not served/)]);
  });
});

describe('the start is refused', () => {
  it('for two handlers of one kind, in one class or in two, naming both places (R22, S26)', async () => {
    @Injectable()
    class Twice {
      @Step({ name: 'pay' }) first(input: number): number {
        return input;
      }
      @Step({ name: 'pay' }) second(input: number): number {
        return input;
      }
    }
    @Injectable()
    class Other {
      @Step() charge(input: number): number {
        return input;
      }
    }
    const found = await explore({ providers: [Twice, Charging, Other] });
    expect(found.problems).toHaveLength(2);
    expect(found.problems.every((problem) => DuplicateHandlerError.is(problem))).toBe(true);
    expect(found.problems).toMatchObject([
      { kind: 'pay', owners: ['Twice.first', 'Twice.second'] },
      { kind: 'charge', owners: ['Charging.charge', 'Other.charge'] },
    ]);
  });

  it('for one class in two modules, naming the modules', async () => {
    @Module({ providers: [Charging] })
    class Shop {}
    @Module({ providers: [Charging] })
    class Billing {}
    const found = await explore({ imports: [Shop, Billing] });
    expect(found.problems).toMatchObject([
      { kind: 'charge', owners: ['Charging.charge (provided in Shop)', 'Charging.charge (provided in Billing)'] },
      { kind: 'receipt' },
    ]);
  });

  it('for an override that lost its decorator, naming both methods', async () => {
    @Injectable()
    class Careless extends Charging {
      override charge(): string {
        return 'lost';
      }
    }
    const found = await explore({ providers: [Careless] });
    expect(found.problems.map((problem) => UnknownHandlerError.is(problem))).toEqual([true]);
    expect(messages(found)[0]).toMatch(/"Careless\.charge" is not a known handler\. It overrides Charging\.charge/);
    expect(kinds(found)).toEqual(['receipt']);
  });

  it('for a handler in a controller, which nobody would serve', async () => {
    @Controller()
    class Misplaced {
      @Step() misplaced(i: number): number {
        return i;
      }
    }
    const found = await explore({ controllers: [Misplaced] });
    expect(messages(found)).toEqual([
      '"Misplaced.misplaced" is not a known handler. It is a method of a controller. Move it to a provider.',
    ]);
  });

  it('for every wrong option of every handler and workflow at once', async () => {
    @Injectable()
    class Wrong {
      @Step({ queue: '', priority: 0.5, timeout: '5 parsecs' as never, retry: { maxAttempts: 0 } }) options(
        i: number,
      ): number {
        return i;
      }
      @Step({ retires: 3 } as never) unknown(i: number): number {
        return i;
      }
      @Step({ name: 'with[brackets]' }) bracket(i: number): number {
        return i;
      }
      @Step() [Symbol('nameless')](i: number): number {
        return i;
      }
    }
    @Workflow({ name: '', runDeadline: '-1s' as never })
    class WrongWorkflow {
      define(): void {}
    }
    const found = await explore({ providers: [Wrong, WrongWorkflow] });
    expect(found.problems.every((problem) => InvalidOptionError.is(problem))).toBe(true);
    expect(found.problems.map((problem) => (problem as InvalidOptionError).option)).toEqual([
      'queue of Wrong.options',
      'priority of Wrong.options',
      'timeout of Wrong.options',
      'retry.maxAttempts of Wrong.options',
      'retires of Wrong.unknown',
      'name of Wrong.bracket',
      'name of Wrong.Symbol(nameless)',
      'name of WrongWorkflow',
      'runDeadline of WrongWorkflow',
    ]);
  });

  it('for a handler that is a generator: its body would never run (F6)', async () => {
    const step = Step() as MethodDecorator; // as JavaScript sees it: the types refuse a generator
    @Injectable()
    class Lazy {
      @step *gen(i: string) {
        yield i;
      }
      @step async *asyncGen(i: string) {
        yield i;
      }
    }
    const found = await explore({ providers: [Lazy] });
    expect(messages(found)).toEqual([
      expect.stringMatching(/"Lazy\.gen".*generator function.*async function that returns an array/),
      expect.stringMatching(/"Lazy\.asyncGen".*generator function/),
    ]);
  });

  it('for a listener that names an event that there is not, or none at all (F34)', async () => {
    @Injectable()
    class Deaf {
      @OnStepEvent('complete' as never) misspelt(): void {}
      @OnStepEvent([]) none(): void {}
    }
    const found = await explore({ providers: [Deaf] });
    expect(found.listeners).toEqual([]);
    expect(messages(found)).toEqual([
      expect.stringMatching(/Deaf\.misspelt names "complete"\. Events are submitted, .*run_reopened\.$/),
      expect.stringMatching(/Deaf\.none names none\. Events are /),
    ]);
  });

  it('for a workflow or a listener that is request-scoped, or injects what is', async () => {
    @Workflow({ name: 'scoped' })
    @Injectable({ scope: Scope.REQUEST })
    class Scoped {
      define(): void {}
    }
    @Injectable({ scope: Scope.REQUEST })
    class Tenant {}
    @Injectable()
    class Listening {
      constructor(readonly tenant: Tenant) {}
      @OnStepEvent() hear(): void {}
    }
    const found = await explore({ providers: [Scoped, Tenant, Listening] });
    expect(found.problems.map((problem) => (problem as InvalidOptionError).option)).toEqual([
      'scope of Scoped',
      'scope of Listening.hear',
    ]);
  });
});

describe('workflows', () => {
  @Workflow({ name: 'place_order', runDeadline: '7d' })
  class PlaceOrder {
    define(_builder: WorkflowBuilder): void {}
  }

  it('are found by their class, overridden ones too', async () => {
    const found = await explore({ providers: [PlaceOrder] });
    expect(found.workflows.get(PlaceOrder)).toMatchObject({ name: 'place_order', options: { runDeadline: '7d' } });
    await app?.close();

    const fake = { define: () => undefined };
    const faked = await explore({ providers: [PlaceOrder] }, (builder) => {
      builder.overrideProvider(PlaceOrder).useValue(fake);
    });
    expect(faked.workflows.get(PlaceOrder)).toMatchObject({ name: 'place_order', instance: fake });
  });

  it('with one name refuse the start, naming both classes', async () => {
    @Workflow({ name: 'place_order' })
    class PlaceOrderAgain {
      define(): void {}
    }
    const found = await explore({ providers: [PlaceOrder, PlaceOrderAgain] });
    expect(found.problems).toMatchObject([{ kind: 'place_order', owners: ['PlaceOrder', 'PlaceOrderAgain'] }]);
  });
});

describe('several Cyclones', () => {
  @Injectable()
  class Mixed {
    @Step() ours(i: number): number {
      return i;
    }
    @Step({ cyclone: 'archive' }) theirs(i: number): number {
      return i;
    }
    @OnStepEvent('completed') hear(): void {}
    @OnStepEvent(['discarded', 'run_failed'], { cyclone: 'archive' }) hearTheirs(): void {}
  }

  it('get what names them', async () => {
    await start({ providers: [Mixed] });
    const known = [undefined, 'archive'];
    const [ours, theirs] = [exploreAs(undefined, known), exploreAs('archive', known)];
    expect([kinds(ours), kinds(theirs)]).toEqual([['ours'], ['theirs']]);
    expect(ours.listeners.map(({ where, metadata }) => [where, metadata.types])).toEqual([
      ['Mixed.hear', ['completed']],
    ]);
    expect(theirs.listeners.map(({ where, metadata }) => [where, metadata.types])).toEqual([
      ['Mixed.hearTheirs', ['discarded', 'run_failed']],
    ]);
  });

  it('are refused when a handler or a listener names one that the application does not import', async () => {
    const found = await explore({ providers: [Mixed] });
    expect(messages(found)).toEqual([
      'The option cyclone of Mixed.theirs means the CycloneModule named "archive", which the application does not import. It imports (the unnamed one).',
      expect.stringContaining('cyclone of Mixed.hearTheirs'),
    ]);
  });
});

describe('a scoped handler', () => {
  it('gets an instance of its own for each execution, with the context as its request', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class PerRun {
      constructor(@Inject(REQUEST) readonly request: StepContext) {}
      @Step() which(_input: number): string {
        return this.request.runId;
      }
    }
    const found = await explore({ providers: [PerRun] });
    const { host } = found.handlers.get('which') as NonNullable<ReturnType<Discovery['handlers']['get']>>;
    const [one, two] = await Promise.all([host.resolve({ runId: '1' }), host.resolve({ runId: '2' })]);
    expect(one.instance).not.toBe(two.instance);
    expect([(one.instance as PerRun).which(0), (two.instance as PerRun).which(0)]).toEqual(['1', '2']);
  });
});
