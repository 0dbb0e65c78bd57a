import {
  Inject,
  Injectable,
  Module,
  ParseIntPipe,
  ValidationPipe,
  VersioningType,
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  type INestApplication,
  type NestInterceptor,
} from '@nestjs/common';
import { map, type Observable } from 'rxjs';
import {
  CycloneModule,
  getWorkflowClientToken,
  InvalidOptionError,
  StartupError,
  type WorkflowClient,
} from 'nestjs-cyclone';
import { CycloneAdminModule, type CycloneAdminOptions } from 'nestjs-cyclone/admin';
import { AdminFixture, GUARDED, Order, RootModule, TokenGuard, type AdminApplication } from './fixture.js';

let fixture: AdminFixture;
beforeAll(async () => {
  fixture = await AdminFixture.create();
});
afterEach(() => fixture.closeAll());
afterAll(() => fixture.end());

/** What a refused start was refused with. It is refused before anybody asks for a database. */
const refusal = (admin?: CycloneAdminOptions): Promise<unknown> =>
  fixture.start({ imports: [CycloneAdminModule.forRoot(admin)] }).then(
    () => 'The application has started.',
    (error: unknown) => error,
  );

describe('an application does not start', () => {
  it.each([
    ['without options', undefined],
    ['without guards', { path: 'admin' }],
    ['with an empty list of guards', { guards: [] }],
    ['with insecure: false and no guards', { insecure: false }],
  ])('%s (S16)', async (_, options) => {
    const error = await refusal(options);
    expect(InvalidOptionError.is(error)).toBe(true);
    expect(error).toMatchObject({ code: 'CYCLONE_INVALID_OPTION', option: 'guards' });
  });

  it.each<[string, object]>([
    ['guards', { guards: 'TokenGuard' }],
    ['guards', { guards: [Object] }],
    ['guards', { guards: [null] }],
    ['path', { guards: [TokenGuard], path: '/' }],
    ['path', { guards: [TokenGuard], path: '' }],
    ['path', { guards: [TokenGuard], path: ':tenant/admin' }],
    ['path', { guards: [TokenGuard], path: '../admin' }],
    ['path', { guards: [TokenGuard], path: 'a*b' }],
    ['readOnly', { guards: [TokenGuard], readOnly: 'yes' }],
    ['access', { guards: [TokenGuard], access: 'all' }],
    ['redact', { guards: [TokenGuard], redact: {} }],
    ['getUser', { guards: [TokenGuard], getUser: 'me' }],
    ['imports', { guards: [TokenGuard], imports: TokenGuard }],
    ['name', { guards: [TokenGuard], name: '' }],
    ['name', { guards: [TokenGuard], name: 'nobody' }],
    ['guard', { guards: [TokenGuard], guard: TokenGuard }],
  ])('with a wrong %s (%#)', async (option, options) => {
    expect(await refusal(options as CycloneAdminOptions)).toMatchObject({ code: 'CYCLONE_INVALID_OPTION', option });
  });

  it('and names all that is wrong at once (R22)', async () => {
    const error = await refusal({ path: '/', readOnly: 1 } as never);
    expect(StartupError.is(error)).toBe(true);
    expect((error as StartupError).problems).toHaveLength(3);
  });
});

describe('insecure: true', () => {
  it('opens the API to everybody, and the start warns', async () => {
    const app = await fixture.start({ admin: { path: 'admin', insecure: true }, cyclone: { worker: false } });
    expect(fixture.logs.lines.filter((line) => line.includes('open to everybody'))).toEqual([
      expect.stringMatching(/^warn .*\/admin\/api\/v1/),
    ]);
    expect((await app.get('/meta', { as: null })).body).toMatchObject({ actor: 'admin API', read_only: false });
    const id = await app.later();
    expect((await app.post(`/runs/${id}/cancel`, {}, { as: null })).status).toBe(200);
    // Nobody is logged in, but a foreign page still cannot do it.
    expect((await app.ask('POST', '/purge', { as: null, body: '{}' })).status).toBe(403);
  });

  it('is not needed with guards, which then warn of nothing', async () => {
    await fixture.start({ cyclone: { worker: false } });
    expect(fixture.logs.lines.filter((line) => line.startsWith('warn'))).toEqual([]);
  });
});

/** A round over all routes: each answers what it answers elsewhere. */
async function expectWhole(app: AdminApplication): Promise<void> {
  const completed = await app.order('round');
  const failed = await app.order('trip', 'failed');
  const { body: document } = await app.get('/openapi.json');
  expect(document.servers).toEqual([{ url: app.base }]);
  for (const [template, operations] of Object.entries(document.paths as Record<string, Record<string, unknown>>)) {
    const path = template.replace('{id}', failed).replace('{node}', 'charge');
    for (const method of Object.keys(operations)) {
      const again = method === 'get' ? app.get(path) : app.post(path, path === '/purge' ? { older_than: '1d' } : {});
      const { status, headers } = await again;
      // Of the mutations of one run, each can only be the first once.
      const expected = method === 'get' || !template.includes('{id}') ? [200] : [200, 409];
      expect({ path, method, ok: expected.includes(status), status }).toEqual({ path, method, ok: true, status });
      expect(headers.get('cache-control')).toBe('no-store');
      const anonymous = await app.ask(method.toUpperCase(), path, { as: null });
      expect({ path, method, status: anonymous.status }).toEqual({ path, method, status: 401 });
      expect(anonymous.headers.get('content-type')).toContain('application/problem+json');
    }
  }
  expect((await app.get(`/runs/${completed}/steps/charge/payload`)).body).toMatchObject({
    input: { value: { value: 'round' }, omitted: false },
  });
}

describe('the routes', () => {
  it('work on Fastify as on Express', async () => {
    const app = await fixture.start({ platform: 'fastify' });
    const routes = app.routes.filter(({ path }) => path.startsWith('/admin'));
    expect(routes.length).toBeGreaterThanOrEqual(26);
    const { body: document } = await app.get('/openapi.json');
    const described = Object.entries(document.paths as Record<string, object>).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(
      routes.map(({ method, path }) => `${method} ${path.slice(13).replace(/:(\w+)/g, '{$1}')}`).toSorted(),
    ).toEqual(described.toSorted());
    await expectWhole(app);

    expect((await app.get('/runs/abc')).body).toMatchObject({ status: 400, code: 'CYCLONE_INVALID_OPTION' });
    expect((await app.get('/runs?state=failed&state=paused&limit=5')).status).toBe(200);
    expect((await app.get('/runs?__proto__=1')).status).toBe(400);
    expect((await app.get('/runs?limit=5&limit=6')).status).toBe(400);
    const id = await app.later();
    for (const node of ['a/b', '100%', `o'brien?#&`, '日本語🎉', 'x'.repeat(500)]) {
      const { body } = await app.get(`/runs/${id}/steps/${encodeURIComponent(node)}/explain`);
      expect(body).toMatchObject({ code: 'CYCLONE_NODE_NOT_FOUND', node });
    }
    const missing = await app.ask('POST', `/runs/${id}/cancel`, {
      headers: { 'content-type': 'application/json' },
      body: {},
    });
    expect(missing.body).toMatchObject({ status: 403, code: 'CYCLONE_HEADER_MISSING' });
    for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
      const headers = { 'content-type': type };
      expect((await app.post(`/runs/${id}/cancel`, 'a=b', { headers })).status).toBe(415);
    }
    expect((await app.post(`/runs/${id}/cancel`, '{"__proto__":{}}')).status).toBe(400);
    expect((await app.get(`/runs/${id}`)).body.run.state).toBe('running');
  });

  it('answer 405 on Fastify too when they are read-only', async () => {
    const app = await fixture.start({
      platform: 'fastify',
      admin: { ...GUARDED, readOnly: true },
      cyclone: { worker: false },
    });
    const mutations = app.routes.filter(({ method, path }) => method === 'POST' && path.startsWith('/admin'));
    expect(mutations).toHaveLength(8);
    for (const { path } of mutations) {
      expect((await app.post(path.slice(13).replace(':id', '1').replace(':node', 'a'))).status).toBe(405);
    }
  });

  it('warn when Fastify would not find nodes with long names', async () => {
    const { FastifyAdapter } = await import('@nestjs/platform-fastify');
    const { NestFactory } = await import('@nestjs/core');
    const app = await NestFactory.create(
      {
        module: RootModule,
        imports: [fixture.typeorm(), CycloneModule.forRoot({ worker: false }), CycloneAdminModule.forRoot(GUARDED)],
      },
      new FastifyAdapter(),
      { logger: fixture.logs, abortOnError: false },
    );
    await app.init();
    expect(fixture.logs.lines).toContainEqual(expect.stringContaining('maxParamLength: 520'));
    await app.close();
  });

  it.each(['express', 'fastify'] as const)(
    'stand below a global prefix, whatever versioning by URI the application has: %s',
    async (platform) => {
      const app = await fixture.start({
        platform,
        admin: { ...GUARDED, path: '/internal/cyclone/' },
        configure(it: INestApplication) {
          it.setGlobalPrefix('shop');
          it.enableVersioning({ type: VersioningType.URI, defaultVersion: '7' });
        },
      });
      app.base = '/shop/internal/cyclone/api/v1';
      if (platform === 'express') await expectWhole(app);
      const { body } = await app.get('/openapi.json');
      expect(body.servers).toEqual([{ url: app.base }]);
      expect((await app.post('/purge', { older_than: '1d' })).status).toBe(200);
      expect((await app.get('/runs/1/steps/a', { as: null })).status).toBe(401);
      app.base = '/shop/v7/internal/cyclone/api/v1';
      expect((await app.get('/meta')).status).toBe(404);
    },
  );

  it('take no notice of the pipes of the application', async () => {
    const app = await fixture.start({
      configure(it) {
        it.useGlobalPipes(
          new ParseIntPipe(),
          new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true, validateCustomDecorators: true }),
        );
      },
    });
    expect((await app.get('/runs?limit=5&state=failed&created_to=2031-01-01T00:00:00Z')).status).toBe(200);
    expect((await app.post('/purge', { older_than: '1d', reason: 'none' })).status).toBe(200);
    expect((await app.get('/runs/999999999999/steps/a/explain')).status).toBe(404);
    expect((await app.get('/runs?limit=0')).body.detail).toContain('limit must be a whole number from 1 to 200');
  });

  it('run within the interceptors of the application, as every route does', async () => {
    class Envelope implements NestInterceptor {
      intercept(_: ExecutionContext, next: CallHandler): Observable<unknown> {
        return next.handle().pipe(map((answer: unknown) => ({ answer })));
      }
    }
    const app = await fixture.start({
      cyclone: { worker: false },
      configure: (it) => it.useGlobalInterceptors(new Envelope()),
    });
    expect((await app.get('/meta')).body).toEqual({ answer: expect.objectContaining({ read_only: false }) });
  });

  it('leave the other routes of the application alone (S16)', async () => {
    const app = await fixture.start({ cyclone: { worker: false } });
    app.base = '';
    for (const path of ['/health', '/', '/admin', '/admin/api', '/admin/api/v1', '/admin/api/v1/nothing']) {
      const { status, body } = await app.get(path, { as: null });
      expect({ path, status, message: body.message }).toEqual({ path, status: 404, message: `Cannot GET ${path}` });
    }
  });
});

describe('guards', () => {
  it('are made with what imports and global modules provide, and run in their order', async () => {
    const asked: string[] = [];
    @Injectable()
    class Secrets {
      readonly password = 'sesame';
    }
    @Module({ providers: [Secrets], exports: [Secrets] })
    class SecretsModule {}
    @Injectable()
    class PasswordGuard implements CanActivate {
      constructor(@Inject(Secrets) private readonly secrets: Secrets) {}
      canActivate(context: ExecutionContext): boolean {
        asked.push('password');
        const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
        return headers['x-password'] === this.secrets.password;
      }
    }
    const second = { canActivate: () => asked.push('second') > 0 };
    const app = await fixture.start({
      cyclone: { worker: false },
      admin: {
        path: 'admin',
        imports: [SecretsModule],
        guards: [PasswordGuard, second],
        access: () => (asked.push('access'), 'all'),
        getUser: async () => 'the holder of the password',
      },
    });
    expect((await app.get('/meta')).body).toMatchObject({ status: 403, code: 'CYCLONE_FORBIDDEN' });
    expect(asked).toEqual(['password']);
    const { body } = await app.get('/meta', { headers: { 'x-password': 'sesame' } });
    expect(body).toMatchObject({ actor: 'the holder of the password' });
    expect(asked).toEqual(['password', 'password', 'second', 'access']);
  });

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['what is no access', 'everything'],
    ['an object', { read: true }],
    ['a name of a method', 'constructor'],
  ])('and an access that gives %s open nothing', async (_, access) => {
    const app = await fixture.start({
      cyclone: { worker: false },
      admin: { ...GUARDED, access: () => access as never },
    });
    expect((await app.get('/meta')).status).toBe(403);
  });

  it('and an access that throws open nothing, and say why only when it is an answer', async () => {
    let thrown: Error = new Error('no session: canary');
    const app = await fixture.start({
      cyclone: { worker: false },
      admin: { ...GUARDED, access: () => Promise.reject(thrown) },
    });
    const { status, text } = await app.get('/meta');
    expect(status).toBe(500);
    expect(text).not.toContain('canary');
    const { HttpException } = await import('@nestjs/common');
    thrown = new HttpException('Too many requests', 429);
    expect((await app.get('/meta')).body).toMatchObject({
      status: 429,
      code: 'CYCLONE_HTTP_429',
      detail: 'Too many requests',
    });
  });
});

describe('several Cyclones in one application', () => {
  it('have an admin API each', async () => {
    const app = await fixture.start({
      imports: [
        fixture.typeorm(),
        CycloneModule.forRoot({ migrationsRun: true, worker: false }),
        CycloneModule.forRoot({ name: 'mail', schema: 'mail', migrationsRun: true, worker: false }),
        CycloneAdminModule.forRoot(GUARDED),
        CycloneAdminModule.forRoot({ ...GUARDED, path: 'mail', name: 'mail', readOnly: true }),
      ],
    });
    const client = app.app.get<WorkflowClient>(getWorkflowClientToken(), { strict: false });
    const { id } = await client.submit(Order, { value: 1 });
    expect((await app.get('/meta')).body).toMatchObject({ name: null, schema: 'public', read_only: false });
    expect((await app.get('/runs')).body.data[0].id).toBe(id);
    app.base = '/mail/api/v1';
    expect((await app.get('/meta')).body).toMatchObject({ name: 'mail', schema: 'mail', read_only: true });
    expect((await app.get('/runs')).body.data).toEqual([]);
    expect((await app.post('/purge', { older_than: '1d' })).status).toBe(405);
  });
});
