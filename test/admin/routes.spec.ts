import type { Permission } from 'nestjs-cyclone/admin';
import { PERMISSIONS } from 'nestjs-cyclone/admin';
import { AdminFixture, GUARDED, type AdminApplication, type Route } from './fixture.js';

let fixture: AdminFixture;
let closed: AdminApplication;
let readOnly: AdminApplication;
beforeAll(async () => {
  fixture = await AdminFixture.create();
  closed = await fixture.start();
  readOnly = await fixture.start({ admin: { ...GUARDED, readOnly: true }, cyclone: { worker: false } });
});
afterAll(() => fixture.end());

/** Every route that the router has, with what an address of it looks like; not what this test believes to be there. */
const routesOf = ({ routes }: AdminApplication): Route[] =>
  routes
    .filter(({ path }) => path.startsWith('/admin'))
    .map(({ method, path }) => ({
      method,
      path: path.replace('/admin/api/v1', '').replace(':id', '1').replace(':node', 'a'),
    }));
const mutationsOf = (app: AdminApplication): Route[] => routesOf(app).filter(({ method }) => method !== 'GET');

const as = (role: string | null, headers: Record<string, string> = {}) => ({
  as: role,
  headers: { 'content-type': 'application/json', 'x-cyclone-admin': '1', ...headers },
});
const send = (app: AdminApplication, { method, path }: Route, ask: ReturnType<typeof as>) =>
  app.ask(method, path, { ...ask, ...(method === 'GET' ? {} : { body: {} }) });

describe('every route of the router', () => {
  it('is one of the table, which is not empty', () => {
    const routes = routesOf(closed);
    expect(routes.length).toBeGreaterThanOrEqual(26);
    expect(mutationsOf(closed)).toHaveLength(8);
    expect(new Set(routes.map(({ method }) => method))).toEqual(new Set(['GET', 'POST']));
  });

  it('answers 401 without credentials, with a problem that says nothing else (S16)', async () => {
    for (const route of routesOf(closed)) {
      const { status, body, headers } = await send(closed, route, as(null));
      expect({ ...route, status }).toEqual({ ...route, status: 401 });
      expect(headers.get('content-type')).toContain('application/problem+json');
      expect(body).toEqual({
        type: 'urn:nestjs-cyclone:problem:unauthenticated',
        title: expect.any(String),
        status: 401,
        code: 'CYCLONE_UNAUTHENTICATED',
        detail: 'Send a token.',
      });
    }
  });

  it('answers 403 to who may do nothing', async () => {
    for (const route of routesOf(closed)) {
      const { status, body } = await send(closed, route, as('stranger'));
      expect({ ...route, status, code: body.code }).toEqual({ ...route, status: 403, code: 'CYCLONE_FORBIDDEN' });
    }
  });

  it('declares a permission, and asks for it', async () => {
    const { body } = await closed.get('/openapi.json');
    for (const { method, path } of closed.routes.filter((one) => one.path.startsWith('/admin'))) {
      const documented = path.replace('/admin/api/v1', '').replace(/:(\w+)/g, '{$1}');
      const permission = body.paths[documented]?.[method.toLowerCase()]?.['x-permission'] as Permission;
      expect(PERMISSIONS).toContain(permission);
      const route = { method, path: path.replace('/admin/api/v1', '').replace(':id', '1').replace(':node', 'a') };
      const allowed: Record<string, readonly Permission[]> = {
        admin: PERMISSIONS,
        reader: ['read', 'audit:read'],
        pauser: ['read', 'run:pause'],
        auditor: ['audit:read'],
      };
      for (const [role, permissions] of Object.entries(allowed)) {
        const { status } = await send(closed, route, as(role));
        expect({ ...route, role, refused: status === 403 }).toEqual({
          ...route,
          role,
          refused: !permissions.includes(permission),
        });
      }
    }
  });

  it('is described by openapi.json, which describes nothing else', async () => {
    const { body, status } = await closed.get('/openapi.json');
    expect(status).toBe(200);
    expect(body).toMatchObject({ openapi: '3.1.0', servers: [{ url: '/admin/api/v1' }] });
    const described = Object.entries(body.paths).flatMap(([path, operations]) =>
      Object.keys(operations as object).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const routed = closed.routes
      .filter(({ path }) => path.startsWith('/admin'))
      .map(({ method, path }) => `${method} ${path.replace('/admin/api/v1', '').replace(/:(\w+)/g, '{$1}')}`);
    expect(described.toSorted()).toEqual(routed.toSorted());
  });
});

describe('every mutation', () => {
  it('answers 405 when the API is read-only, to those who may otherwise', async () => {
    const run = await closed.later();
    for (const route of mutationsOf(readOnly)) {
      const at = { ...route, path: route.path.replace('/1/', `/${run}/`) };
      const { status, body, headers } = await send(readOnly, at, as('admin'));
      expect({ ...route, status, code: body.code }).toEqual({ ...route, status: 405, code: 'CYCLONE_READ_ONLY' });
      expect(headers.get('allow')).toBe('');
      expect((await send(readOnly, at, as(null))).status).toBe(401);
      expect((await send(readOnly, at, as('reader'))).status).toBe(403);
    }
    expect((await readOnly.get(`/runs/${run}`)).body.run.state).toBe('running');
    expect((await readOnly.get('/meta')).body).toMatchObject({ read_only: true });
  });

  it('needs the header that a page of another origin cannot send', async () => {
    const run = await closed.later();
    for (const route of mutationsOf(closed)) {
      const path = route.path.replace('/1/', `/${run}/`);
      for (const value of [undefined, '', '0', '1, 1']) {
        const headers = {
          'content-type': 'application/json',
          ...(value === undefined ? {} : { 'x-cyclone-admin': value }),
        };
        const { status, body } = await closed.ask('POST', path, { headers, body: { dry_run: false, older_than: 1 } });
        expect({ path, status, code: body.code }).toEqual({ path, status: 403, code: 'CYCLONE_HEADER_MISSING' });
      }
    }
    expect((await closed.get(`/runs/${run}`)).body.run.state).toBe('running');
  });

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/jsonp'])(
    'refuses a body of type %s, which a form can send',
    async (type) => {
      for (const { path } of mutationsOf(closed)) {
        const { status, body } = await closed.ask('POST', path, {
          headers: { 'content-type': type, 'x-cyclone-admin': '1' },
          body: '{}',
        });
        expect({ path, status, code: body.code }).toEqual({
          path,
          status: 415,
          code: 'CYCLONE_UNSUPPORTED_MEDIA_TYPE',
        });
      }
    },
  );

  it('is a POST: no GET, PUT, PATCH or DELETE reaches it', async () => {
    for (const { path } of mutationsOf(closed)) {
      for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
        const { status } = await closed.ask(method, path, { headers: { 'x-cyclone-admin': '1' } });
        expect({ method, path, status }).toEqual({ method, path, status: 404 });
      }
    }
  });
});
