import {
  CanActivate,
  Catch,
  ExceptionFilter,
  ExecutionContext,
  Inject,
  Injectable,
  Logger,
  NestInterceptor,
  Scope,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
  ValidationPipe,
  CallHandler,
  type INestApplicationContext,
} from '@nestjs/common';
import { APP_GUARD, REQUEST } from '@nestjs/core';
import { Type } from 'class-transformer';
import { IsDate, IsInt, Min } from 'class-validator';
import { map, type Observable } from 'rxjs';
import {
  InputValidationError,
  RunFailedError,
  StartupError,
  Step,
  StepContext,
  UnknownHandlerError,
  Workflow,
  WorkflowBuilder,
  WorkflowClient,
  from,
  lit,
  stepsOf,
  type WorkflowDefinition,
} from 'nestjs-cyclone';
import { Applications } from './app.fixture.js';

let apps: Applications;
beforeAll(async () => {
  apps = await Applications.create();
});
afterEach(() => apps.closeAll());
afterAll(() => apps.end());

const clientOf = (app: INestApplicationContext): WorkflowClient => app.get(WorkflowClient);

describe('an input with a DTO class (R37)', () => {
  class Line {
    @IsInt() @Min(1) quantity!: number;
  }
  class Visit {
    @Type(() => Date) @IsDate() at!: Date;
  }
  @Injectable()
  class Typed {
    @Step() named(line: Line): string {
      return `${line instanceof Line} ${line.quantity}`;
    }
    @Step({ input: Visit }) revived(visit: Visit): number {
      return visit.at.getUTCFullYear();
    }
    @Step() broken(_input: number): { quantity: number } {
      return { quantity: 0 };
    }
  }
  const typed = stepsOf(Typed);

  @Workflow({ name: 'computed' })
  class Computed implements WorkflowDefinition<number, string> {
    define(b: WorkflowBuilder, input: number) {
      return b.step(typed.named, from(b.step(typed.broken, lit(input))));
    }
  }

  it('arrives as an instance, whether the class is an option or only the type of the parameter', async () => {
    const client = clientOf(await apps.start({ providers: [Typed] }));
    const [named, revived] = [
      await client.enqueue(typed.named, { quantity: 2 }),
      await client.enqueue(typed.revived, { at: '2031-05-06T07:08:09Z' }),
    ];
    expect([await named.result(), await revived.result()]).toEqual(['true 2', 2031]);
  });

  it('is refused at submit when it is a literal, and discards the step as permanent when it is computed', async () => {
    const client = clientOf(await apps.start({ providers: [Typed, Computed] }));
    await expect(client.enqueue(typed.named, { quantity: 0 })).rejects.toThrow(InputValidationError);
    const run = await client.submit(Computed, 1);
    await expect(run.result()).rejects.toMatchObject({
      constructor: RunFailedError,
      node: 'named',
      errorKind: 'permanent',
      error: expect.stringMatching(/input of node "named" is invalid: quantity must not be less than 1/) as string,
    });
  });
});

describe('a DTO class of which no instance can be made (F23)', () => {
  class Sized {
    readonly length: number;
    constructor(text: string) {
      this.length = text.length;
    }
  }
  class Nested {
    @Type(() => Sized) inner!: Sized;
  }
  @Injectable()
  class Handlers {
    @Step({ input: Nested }) nested(input: Nested): number {
      return input.inner.length;
    }
    @Step() make(_input: number): { inner: object } {
      return { inner: {} };
    }
  }
  const handlers = stepsOf(Handlers);
  @Workflow({ name: 'nested' })
  class NestedInput {
    define(b: WorkflowBuilder, input: number): void {
      b.step(handlers.nested, from(b.step(handlers.make, lit(input))) as never);
    }
  }

  it('is refused at the start, for handlers and workflows', async () => {
    @Injectable()
    class Top {
      @Step({ input: Sized }) sized(input: Sized): number {
        return input.length;
      }
    }
    @Workflow({ name: 'sized', input: Sized })
    class SizedInput {
      define(): void {}
    }
    const { problems } = (await apps.refusal({ providers: [Top, SizedInput] })) as StartupError;
    expect(problems.map(({ message }) => message)).toEqual([
      expect.stringMatching(
        /input of Top\.sized is Sized, which cannot be made without arguments.*parameters defaults/,
      ),
      expect.stringMatching(/input of SizedInput is Sized/),
    ]);
  });

  it('inside another one is a typed error of submit, and discards a step for good', async () => {
    const client = clientOf(await apps.start({ providers: [Handlers, NestedInput] }));
    const input = { inner: {} } as never;
    await expect(client.enqueue(handlers.nested, input)).rejects.toMatchObject({
      code: 'CYCLONE_INPUT_VALIDATION',
      message: expect.stringMatching(/no instance of Nested could be made.*without arguments/),
      cause: expect.any(TypeError),
    });
    const run = await client.submit(NestedInput, 1);
    await expect(run.result()).rejects.toMatchObject({ node: 'nested', errorKind: 'permanent' });
  });
});

describe('the context of a step', () => {
  it('has a Nest Logger whose context is the ids of the step', async () => {
    @Injectable()
    class Talking {
      @Step() talk(what: string, ctx: StepContext): string {
        ctx.logger.log(what);
        return `${ctx.logger instanceof Logger}`;
      }
    }
    const run = await clientOf(await apps.start({ providers: [Talking] })).enqueue(stepsOf(Talking).talk, 'hello');
    expect(await run.result()).toBe('true');
    expect(apps.logs.lines).toContain(`log ${run.id}:talk hello`);
  });
});

describe('a provider that is not a singleton', () => {
  let instances = 0;
  @Injectable({ scope: Scope.REQUEST })
  class Tenant {
    constructor(@Inject(REQUEST) readonly context: StepContext) {}
  }
  @Injectable()
  class Bubbled {
    readonly number = ++instances;
    constructor(readonly tenant: Tenant) {}
    @Step() bubbled(_input: number, ctx: StepContext): string {
      return `${this.number} ${this.tenant.context === ctx}`;
    }
  }
  @Injectable({ scope: Scope.REQUEST, durable: true })
  class Durable {
    readonly number = ++instances;
    @Step() durable(_input: number): number {
      return this.number;
    }
  }
  @Injectable({ scope: Scope.TRANSIENT })
  class Transient {
    readonly number = ++instances;
    @Step() transient(_input: number): number {
      return this.number;
    }
  }

  it.each([
    ['request-scoped by what it injects', stepsOf(Bubbled).bubbled],
    ['durable', stepsOf(Durable).durable],
    ['transient', stepsOf(Transient).transient],
  ])('and is %s gets a new instance for each execution', async (_scope, handle) => {
    instances = 0;
    const client = clientOf(await apps.start({ providers: [Tenant, Bubbled, Durable, Transient] }));
    const outputs = new Set<unknown>();
    for (let i = 0; i < 3; i++) outputs.add(await (await client.enqueue(handle as never, i)).result());
    expect(outputs.size).toBe(3);
    if (handle === (stepsOf(Bubbled).bubbled as unknown)) {
      for (const output of outputs) expect(output).toMatch(/^\d+ true$/);
    }
  });
});

describe('enhancers', () => {
  const seen: string[] = [];
  @Injectable()
  class Even implements CanActivate {
    canActivate(context: ExecutionContext): boolean {
      const [input, ctx] = context.getArgs<[number, StepContext]>();
      seen.push(`${context.getType()} ${context.getHandler().name} ${ctx.node}`);
      return input % 2 === 0;
    }
  }
  @Injectable()
  class Doubling implements NestInterceptor {
    intercept(_context: ExecutionContext, next: CallHandler): Observable<number> {
      return next.handle().pipe(map((value: number) => value * 2));
    }
  }
  @Catch(RangeError)
  class Softening implements ExceptionFilter {
    catch(): Promise<string> {
      return Promise.resolve('softened');
    }
  }
  @Injectable()
  class Refusing implements CanActivate {
    canActivate(): boolean {
      return false;
    }
  }
  @Injectable()
  class Enhanced {
    @UseGuards(Even) @UseInterceptors(Doubling) @Step({ retry: { maxAttempts: 1 } }) guarded(input: number): number {
      return input + 1;
    }
    @UseFilters(Softening) @Step() filtered(_input: number): string {
      throw new RangeError('out of range');
    }
    @Step() plain(input: number): number {
      return input;
    }
  }
  @Injectable({ scope: Scope.REQUEST })
  class ScopedEnhanced {
    @UseInterceptors(Doubling) @Step() scoped(input: number): number {
      return input;
    }
  }
  const { guarded, filtered, plain } = stepsOf(Enhanced);

  it('that stand on a handler work with the context type cyclone; those of the whole application do not', async () => {
    const client = clientOf(
      await apps.start({ providers: [Enhanced, ScopedEnhanced, { provide: APP_GUARD, useClass: Refusing }] }),
    );
    expect(await (await client.enqueue(guarded, 4)).result()).toBe(10);
    await expect((await client.enqueue(guarded, 3)).result()).rejects.toThrow(/Forbidden/);
    expect(new Set(seen)).toEqual(new Set(['cyclone guarded guarded']));
    expect(await (await client.enqueue(filtered, 0)).result()).toBe('softened');
    expect(await (await client.enqueue(plain, 7)).result()).toBe(7);
    expect(await (await client.enqueue(stepsOf(ScopedEnhanced).scoped, 7)).result()).toBe(14);
  });

  it('that are pipes refuse the start, because they would do nothing', async () => {
    @Injectable()
    class Piped {
      @UsePipes(ValidationPipe) @Step() piped(input: number): number {
        return input;
      }
    }
    const error = await apps.refusal({ providers: [Piped] });
    expect(error.message).toMatch(/@UsePipes\(\) on Piped\.piped has no effect/);
  });
});

describe('a workflow', () => {
  @Injectable()
  class Steps {
    @Step() echo(input: string): string {
      return input;
    }
  }
  const steps = stepsOf(Steps);
  @Injectable()
  class Prefix {
    readonly value = 'injected';
  }
  @Workflow({ name: 'injecting' })
  class Injecting implements WorkflowDefinition<string, string> {
    constructor(private readonly prefix: Prefix) {}
    define(b: WorkflowBuilder, input: string) {
      return b.step(steps.echo, lit(`${this.prefix.value} ${input}`));
    }
  }
  @Workflow({ name: 'elsewhere', cyclone: 'archive' })
  class Elsewhere {
    define(): void {}
  }
  class Plain {
    define(): void {}
  }

  it('may inject providers, and be submitted in the hooks of the application', async () => {
    let early: string | undefined;
    @Injectable()
    class Early {
      constructor(private readonly client: WorkflowClient) {}
      async onModuleInit(): Promise<void> {
        early = (await this.client.submit(Injecting, 'early')).id;
      }
    }
    const client = clientOf(await apps.start({ providers: [Steps, Prefix, Injecting, Early] }));
    expect(await client.run(early as string).result()).toBe('injected early');
  });

  it('that is not provided, not decorated or of another Cyclone is refused with advice (S24)', async () => {
    const client = clientOf(await apps.start({ cyclone: { worker: false } }));
    const refusal = (workflow: new () => { define(): void }): Promise<Error> =>
      client.submit(workflow as never, null as never).then(
        () => new Error('submitted'),
        (error: unknown) => error as Error,
      );
    const errors = [await refusal(Injecting as never), await refusal(Plain), await refusal(Elsewhere)];
    expect(errors.every((error) => UnknownHandlerError.is(error))).toBe(true);
    expect(errors.map(({ message }) => message)).toEqual([
      expect.stringMatching(/Injecting.*List the class among the providers/),
      expect.stringMatching(/Plain.*Decorate the class with @Workflow\(\)/),
      expect.stringMatching(/Elsewhere.*belongs to the CycloneModule named "archive"/),
    ]);
  });
});
