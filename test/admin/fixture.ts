import 'reflect-metadata';
import {
  Injectable,
  Module,
  UnauthorizedException,
  type CanActivate,
  type ExecutionContext,
  type INestApplication,
  type ModuleMetadata,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { TypeOrmModule } from '@nestjs/typeorm';
import pg from 'pg';
import {
  CycloneModule,
  PermanentError,
  Step,
  Workflow,
  WorkflowClient,
  from,
  lit,
  stepsOf,
  type CycloneOptions,
  type RunState,
  type WorkflowBuilder,
  type WorkflowDefinition,
} from 'nestjs-cyclone';
import { CycloneAdminModule, type Access, type AdminRequest, type CycloneAdminOptions } from 'nestjs-cyclone/admin';
import { LogBook } from '../nest/app.fixture.js';
import { createDatabase, type TestDatabase } from '../support/postgres.js';

/** Whether the step `charge` fails, and what it says then. */
export const charging: { failure: string | null } = { failure: null };

@Injectable()
export class Steps {
  @Step() prepare(input: { value: unknown }): { value: unknown } {
    return input;
  }
  @Step() charge(input: { value: unknown }): { value: unknown } {
    if (charging.failure !== null) throw new PermanentError(charging.failure);
    return input;
  }
}
export const steps = stepsOf(Steps);

@Workflow({ name: 'order' })
export class Order implements WorkflowDefinition<{ value: unknown }, { value: unknown }> {
  define(b: WorkflowBuilder, input: { value: unknown }) {
    const prepared = b.step(steps.prepare, lit(input));
    const charged = b.step(steps.charge, from(prepared));
    return b.step(steps.prepare, from(charged), { node: 'finish' });
  }
}

/** Lets in who has a token; the role in it says what they may do. */
@Injectable()
export class TokenGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ headers: Record<string, string>; user?: unknown }>();
    const [, role] = /^Bearer (\w+)$/.exec(request.headers['authorization'] ?? '') ?? [];
    if (role === undefined) throw new UnauthorizedException('Send a token.');
    request.user = { email: `${role}@example.com`, role };
    return true;
  }
}

const ROLES: Readonly<Record<string, Access>> = {
  admin: 'all',
  reader: 'read',
  pauser: ['read', 'run:pause'],
  auditor: ['audit:read'],
};

/** The root module of every application here: what it has, it gets when it is started. */
@Module({})
export class RootModule {}

/** What the role of a request may do; nobody else may do anything. */
export const accessByRole = ({ user }: AdminRequest): Access => ROLES[(user as { role: string }).role] ?? 'none';

export const GUARDED: CycloneAdminOptions = { path: 'admin', guards: [TokenGuard], access: accessByRole };

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- bodies are compared, not used
  readonly body: any;
}

export interface Ask {
  /** The role to come as; null without a token. @default 'admin' */
  readonly as?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON; a text is sent as it is. */
  readonly body?: unknown;
}

export interface Route {
  readonly method: string;
  readonly path: string;
}

export interface StartOptions extends Pick<ModuleMetadata, 'imports' | 'providers'> {
  readonly admin?: CycloneAdminOptions;
  readonly cyclone?: CycloneOptions;
  readonly platform?: 'express' | 'fastify';
  /** Whether Nest parses bodies. @default true */
  readonly bodyParser?: boolean;
  /** Before the application is initialized: prefix, versioning, pipes. */
  readonly configure?: (app: INestApplication) => void;
}

/** An application that listens, and a client of its admin API. */
export class AdminApplication {
  /** Every body that was answered. */
  readonly bodies: string[] = [];

  constructor(
    readonly app: INestApplication,
    readonly url: string,
    /** Of the router, in the order of registration. */
    readonly routes: readonly Route[],
    public base = '/admin/api/v1',
  ) {}

  async ask(method: string, path: string, { as = 'admin', headers = {}, body }: Ask = {}): Promise<Answer> {
    const response = await fetch(this.url + this.base + path, {
      method,
      headers: { ...(as === null ? {} : { authorization: `Bearer ${as}` }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    this.bodies.push(text);
    const isJson = /json/.test(response.headers.get('content-type') ?? '');
    return { status: response.status, headers: response.headers, text, body: isJson && text ? JSON.parse(text) : text };
  }

  get(path: string, ask: Ask = {}): Promise<Answer> {
    return this.ask('GET', path, ask);
  }

  /** A mutation as a console sends it. */
  post(path: string, body: unknown = {}, ask: Ask = {}): Promise<Answer> {
    const headers = { 'content-type': 'application/json', 'x-cyclone-admin': '1', ...ask.headers };
    return this.ask('POST', path, { ...ask, headers, body });
  }

  /** Submits an order and waits until it has ended as expected. */
  async order(value: unknown = 1, end: RunState = 'completed'): Promise<string> {
    charging.failure = end === 'failed' ? 'declined' : null;
    const run = await this.app.get(WorkflowClient).submit(Order, { value });
    const state = await run.wait({ timeout: '20s' });
    if (state !== end) throw new Error(`The order was to be ${end}, and is ${state}.`);
    return run.id;
  }

  /** An order that nobody works on for now. */
  async later(value: unknown = 1): Promise<string> {
    return (await this.app.get(WorkflowClient).submit(Order, { value }, { delay: '1h' })).id;
  }

  end(runId: string): Promise<RunState> {
    return this.app.get(WorkflowClient).run(runId).wait({ timeout: '20s' });
  }
}

/** The applications of one test file, on a database of their own. */
export class AdminFixture {
  readonly logs = new LogBook();
  private readonly open: INestApplication[] = [];

  private constructor(
    readonly database: TestDatabase,
    private readonly client: pg.Client,
  ) {}

  static async create(): Promise<AdminFixture> {
    const database = await createDatabase();
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    return new AdminFixture(database, client);
  }

  async start(options: StartOptions = {}): Promise<AdminApplication> {
    const { admin = GUARDED, cyclone = {}, platform = 'express', bodyParser = true } = options;
    const { imports, providers = [], configure } = options;
    const root = {
      module: RootModule,
      imports: imports ?? [
        this.typeorm(),
        CycloneModule.forRoot({ migrationsRun: true, ...cyclone }),
        CycloneAdminModule.forRoot(admin),
      ],
      providers: [Steps, Order, ...providers],
    };
    const settings = { logger: this.logs, abortOnError: false, bodyParser } as const;
    const app =
      platform === 'fastify'
        ? await NestFactory.create(root, new FastifyAdapter({ routerOptions: { maxParamLength: 600 } }), settings)
        : await NestFactory.create(root, settings);
    this.open.push(app);
    const fastifyRoutes: Route[] = [];
    if (platform === 'fastify') {
      const instance = app.getHttpAdapter().getInstance() as {
        addHook(name: 'onRoute', hook: (route: { method: string | string[]; url: string }) => void): void;
      };
      instance.addHook('onRoute', ({ method, url }) => {
        for (const one of [method].flat()) if (one !== 'HEAD') fastifyRoutes.push({ method: one, path: url });
      });
    }
    configure?.(app);
    await app.listen(0, '127.0.0.1');
    const routes = platform === 'fastify' ? fastifyRoutes : expressRoutes(app);
    return new AdminApplication(app, (await app.getUrl()).replace('[::1]', '127.0.0.1'), routes);
  }

  typeorm(options: object = {}) {
    return TypeOrmModule.forRoot({
      type: 'postgres',
      url: this.database.url,
      poolSize: 8,
      retryAttempts: 1,
      ...options,
    });
  }

  async sql<T = Record<string, unknown>>(text: string, values?: unknown[]): Promise<T[]> {
    return (await this.client.query(text, values)).rows as T[];
  }

  async closeAll(): Promise<void> {
    for (const app of this.open.splice(0)) await app.close();
    this.logs.lines.length = 0;
  }

  async end(): Promise<void> {
    await this.closeAll();
    await this.client.end();
    await this.database.drop();
  }
}

interface ExpressLayer {
  readonly route?: { readonly path: string; readonly methods: Readonly<Record<string, boolean>> };
}

function expressRoutes(app: INestApplication): Route[] {
  const { router } = app.getHttpAdapter().getInstance() as { router: { stack: ExpressLayer[] } };
  return router.stack.flatMap(({ route }) =>
    route ? Object.keys(route.methods).map((method) => ({ method: method.toUpperCase(), path: route.path })) : [],
  );
}
