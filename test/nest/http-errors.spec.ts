import 'reflect-metadata';
import {
  Body,
  Catch,
  Controller,
  Get,
  HttpException,
  Injectable,
  Module,
  NotFoundException,
  Param,
  Post,
  UseGuards,
  UseInterceptors,
  type ArgumentsHost,
  type CanActivate,
  type ExceptionFilter,
  type INestApplication,
  type ModuleMetadata,
} from '@nestjs/common';
import { APP_FILTER, APP_INTERCEPTOR, NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { TypeOrmModule } from '@nestjs/typeorm';
import { IsEmail } from 'class-validator';
import { throwError } from 'rxjs';
import {
  ConnectionLostError,
  CycloneHttpInterceptor,
  CycloneModule,
  InvalidGraphError,
  RunFailedError,
  Step,
  toHttpException,
  WaitTimeoutError,
  Workflow,
  WorkflowClient,
  lit,
  stepsOf,
  type WorkflowBuilder,
  type WorkflowDefinition,
} from 'nestjs-cyclone';
import { createDatabase, type TestDatabase } from '../support/postgres.js';
import { LogBook } from './app.fixture.js';

class SignUp {
  @IsEmail() email!: string;
}

@Injectable()
class Steps {
  @Step() greet(input: SignUp): string {
    return input.email;
  }
}

@Workflow({ name: 'sign_up', input: SignUp })
class SignUpWorkflow implements WorkflowDefinition<SignUp, string> {
  define(b: WorkflowBuilder, input: SignUp) {
    return b.step(stepsOf(Steps).greet, lit({ email: input.email }));
  }
}

class Refusal implements CanActivate {
  canActivate(): boolean {
    throw toHttpException(new WaitTimeoutError('7', 1)) as HttpException;
  }
}

const SECRET = 'connect ECONNREFUSED 10.1.2.3:5432';

@Controller('runs')
class Runs {
  constructor(private readonly workflows: WorkflowClient) {}

  @Post() async submit(@Body() body: SignUp): Promise<{ id: string }> {
    return { id: (await this.workflows.submit(SignUpWorkflow, body)).id };
  }
  @Get(':id') async show(@Param('id') id: string): Promise<unknown> {
    return this.workflows.run(id).info();
  }
  @Post(':id/resume') async resume(@Param('id') id: string): Promise<void> {
    await this.workflows.run(id).resume();
  }
  @Get(':id/failed') failed(@Param('id') id: string): unknown {
    const discard = { node: 'charge', kind: 'charge', error: SECRET, errorKind: 'permanent' };
    return throwError(() => new RunFailedError(id, discard));
  }
  @Get(':id/guarded') @UseGuards(Refusal) guarded(): void {}
  @Get(':id/other') other(): void {
    throw new NotFoundException('no such order');
  }
  @Get(':id/fault') fault(): void {
    throw new InvalidGraphError(SECRET);
  }
}

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

const logs = new LogBook();
let database: TestDatabase;
const open: INestApplication[] = [];

beforeAll(async () => {
  database = await createDatabase();
});
afterEach(async () => {
  for (const app of open.splice(0)) await app.close();
  logs.lines.length = 0;
});
afterAll(() => database.drop());

@Module({})
class Root {}

async function start(
  metadata: ModuleMetadata,
  adapter?: FastifyAdapter,
): Promise<(method: string, path: string, body?: object) => Promise<Answer>> {
  const module = { module: Root, ...metadata };
  const app = adapter
    ? await NestFactory.create(module, adapter, { logger: logs })
    : await NestFactory.create(module, { logger: logs });
  open.push(app);
  await app.listen(0, '127.0.0.1');
  const base = await app.getUrl();
  return async (method, path, body) => {
    const answer = await fetch(`${base}/${path}`, {
      method,
      ...(body ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } } : {}),
    });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };
}

const cyclone = (url: string) => [
  TypeOrmModule.forRoot({ type: 'postgres', url, poolSize: 3, retryAttempts: 1 }),
  CycloneModule.forRoot({ migrationsRun: true, worker: false }),
];
const forAll = { provide: APP_INTERCEPTOR, useClass: CycloneHttpInterceptor };

describe.each([
  ['Express', () => undefined],
  ['Fastify', () => new FastifyAdapter()],
])('errors of Cyclone in controllers of an application on %s (F37)', (_name, adapter) => {
  it('are answered with the status that fits, and without what a handler or the database said', async () => {
    const call = await start(
      { imports: cyclone(database.url), providers: [Steps, SignUpWorkflow, forAll], controllers: [Runs] },
      adapter(),
    );
    const { id } = (await call('POST', 'runs', { email: 'a@example.com' })).body as { id: string };

    expect(await call('GET', 'runs/987654')).toEqual({
      status: 404,
      body: { statusCode: 404, code: 'CYCLONE_RUN_NOT_FOUND', message: 'There is no such run', runId: '987654' },
    });
    expect(await call('POST', `runs/${id}/resume`)).toMatchObject({
      status: 409,
      body: { code: 'CYCLONE_NOT_PAUSED' },
    });
    expect(await call('GET', 'runs/abc')).toMatchObject({ status: 400, body: { code: 'CYCLONE_INVALID_OPTION' } });
    expect(await call('POST', 'runs', { email: 'nobody' })).toEqual({
      status: 422,
      body: {
        statusCode: 422,
        code: 'CYCLONE_INPUT_VALIDATION',
        message: 'The input is not valid',
        problems: ['email must be an email'],
      },
    });
    const failed = await call('GET', `runs/${id}/failed`);
    expect(failed).toMatchObject({ status: 409, body: { code: 'CYCLONE_RUN_FAILED', runId: id } });
    expect(JSON.stringify(failed)).not.toContain('10.1.2.3');
    expect(await call('GET', `runs/${id}/guarded`)).toMatchObject({ status: 504, body: { runId: '7' } });
    expect(await call('GET', `runs/${id}`)).toMatchObject({ status: 200, body: { workflow: 'sign_up' } });
  });

  it('leave other exceptions and faults of the application as they are', async () => {
    const call = await start(
      { imports: cyclone(database.url), providers: [Steps, SignUpWorkflow, forAll], controllers: [Runs] },
      adapter(),
    );
    expect(await call('GET', 'runs/1/other')).toMatchObject({ status: 404, body: { message: 'no such order' } });
    const fault = await call('GET', 'runs/1/fault');
    expect(fault).toEqual({ status: 500, body: { statusCode: 500, message: 'Internal server error' } });
    expect(logs.lines.join('\n')).toContain(SECRET);
  });
});

@Catch(HttpException)
class OwnForm implements ExceptionFilter {
  catch(exception: HttpException, host: ArgumentsHost): void {
    const { code } = exception.getResponse() as { code?: string };
    const response = host.switchToHttp().getResponse<{ status(code: number): { json(body: object): void } }>();
    response.status(exception.getStatus()).json({ oops: code, cause: (exception.cause as Error).name });
  }
}

@Controller('one')
@UseInterceptors(CycloneHttpInterceptor)
class One {
  @Get() wait(): void {
    throw new WaitTimeoutError('1', 5_000);
  }
}

it('a filter of the application decides on the form of the answer, and sees the error as the cause (F37)', async () => {
  const call = await start({ controllers: [One], providers: [{ provide: APP_FILTER, useClass: OwnForm }] });
  expect(await call('GET', 'one')).toEqual({
    status: 504,
    body: { oops: 'CYCLONE_WAIT_TIMEOUT', cause: 'WaitTimeoutError' },
  });
});

it('an outage of the database is 503, and the log keeps the reason (F37)', async () => {
  @Controller('outage')
  class Outage {
    @Get() submit(): void {
      throw new ConnectionLostError('submit of sign_up', 'nothing', { cause: new Error(SECRET) });
    }
  }
  const call = await start({ controllers: [Outage], providers: [forAll] });
  expect(await call('GET', 'outage')).toEqual({
    status: 503,
    body: { statusCode: 503, code: 'CYCLONE_CONNECTION_LOST', message: 'The database cannot be reached' },
  });
  expect(logs.lines.join('\n')).toMatch(/Cyclone HTTP.*submit of sign_up/);
});

it('outside HTTP every error passes as it is (F37)', async () => {
  const thrown = new WaitTimeoutError('1', 5);
  const context = { getType: () => 'rpc' } as never;
  const answer = new CycloneHttpInterceptor().intercept(context, { handle: () => throwError(() => thrown) });
  await expect(new Promise((_, reject) => answer.subscribe({ error: reject }))).rejects.toBe(thrown);
});
