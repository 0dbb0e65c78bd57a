import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PERMISSIONS } from 'nestjs-cyclone/admin';
import * as errors from '#cyclone/model/errors/index.js';
import { ConnectionLostError } from '#cyclone/client/client-errors.js';
import { DatabaseError } from '#cyclone/client/database-error.js';
import { openApi } from '#cyclone/admin/open-api.js';
import { PROBLEMS } from '#cyclone/admin/problem.js';
import { ROUTES } from '#cyclone/admin/routes/index.js';
import { ROOT } from '../structure/source-files.js';

const file = JSON.parse(readFileSync(join(ROOT, 'docs/openapi.json'), 'utf8')) as Record<string, unknown>;

describe('docs/openapi.json', () => {
  it('says what the table of routes says', () => {
    // Stale: npm run build && node scripts/generate-openapi.mjs
    expect(file).toEqual(JSON.parse(JSON.stringify(openApi(ROUTES, '/cyclone/api/v1'))));
  });

  it('refers only to what it contains', () => {
    const references = [...JSON.stringify(file).matchAll(/"#\/([^"]+)"/g)].map(([, path]) => path!.split('/'));
    expect(references.length).toBeGreaterThan(20);
    for (const path of references) {
      const target = path.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], file);
      expect({ path, found: target !== undefined }).toEqual({ path, found: true });
    }
  });
});

describe('the table of routes', () => {
  it('has a permission, a summary and a name of its own for each', () => {
    for (const route of ROUTES) {
      expect(PERMISSIONS).toContain(route.permission);
      expect(route.summary).toMatch(/\.$/);
      expect(route.method === 'POST').toBe(route.body !== undefined);
    }
    expect(new Set(ROUTES.map(({ name }) => name)).size).toBe(ROUTES.length);
    expect(new Set(ROUTES.map(({ method, path }) => method + path)).size).toBe(ROUTES.length);
  });

  it('lets nobody change anything with a permission to look', () => {
    for (const { method, permission } of ROUTES) expect(method === 'GET').toBe(/^(\w+:)?read$/.test(permission));
  });
});

describe('docs/admin-api.md', () => {
  const page = readFileSync(join(ROOT, 'docs/admin-api.md'), 'utf8');

  it('lists every route with its permission, and no other', () => {
    const listed = [...page.matchAll(/^\| `((?:GET|POST) \S+)` +\| `([\w:]+)`/gm)].map(
      ([, route, right]) => `${route} ${right}`,
    );
    const routed = ROUTES.map(({ method, path, permission }) => `${method} ${path} ${permission}`);
    expect(listed.toSorted()).toEqual(routed.toSorted());
  });

  it('lists every code of a problem with its status', () => {
    for (const [code, [status]] of Object.entries(PROBLEMS)) {
      expect(page).toMatch(new RegExp(`^\\| ${status} .*\`${code}\``, 'm'));
    }
  });
});

describe('the codes of problems', () => {
  it('are those of the errors that operating throws', () => {
    const thrown = [
      errors.RunNotFoundError,
      errors.NodeNotFoundError,
      errors.AlreadyTerminalError,
      errors.NotPausedError,
      errors.NotRetryableError,
      errors.ChildNotRetryableError,
      errors.InvalidOptionError,
      errors.SchemaVersionError,
      ConnectionLostError,
      DatabaseError,
    ];
    for (const { code } of thrown) expect(Object.keys(PROBLEMS)).toContain(code);
  });
});
