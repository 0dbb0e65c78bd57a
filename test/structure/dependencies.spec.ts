import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join, posix } from 'node:path';
import { importsOf, ROOT, sourceFiles, sqlOf } from './source-files.js';

/** What the files of each folder may import, beside their own folder. */
const MAY_IMPORT: Record<string, string[]> = {
  model: [],
  graph: ['model'],
  store: ['graph', 'model'],
  worker: ['store', 'graph', 'model'],
  client: ['store', 'graph', 'model'],
  nest: ['worker', 'client', 'store', 'graph', 'model'],
  admin: ['nest', 'client', 'store', 'graph', 'model'],
  cli: ['client', 'store', 'graph', 'model'],
};
const MAY_IMPORT_NEST = new Set(['nest', 'admin']);
const LIBRARY = 'libs/cyclone';

const packageJson = JSON.parse(readFileSync(join(ROOT, LIBRARY, 'package.json'), 'utf8')) as Record<string, object>;
const library = [...sourceFiles(`${LIBRARY}/src`), ...sourceFiles(`${LIBRARY}/cli`)];
const application = sourceFiles('apps/sample/src');
const imports = library.flatMap(({ path, text }) => importsOf(text).map((target) => ({ path, target })));

/** The folder that decides what a file may touch; undefined for the entry points beside the folders. */
function folderOf(path: string): string | undefined {
  const inside = posix.relative(LIBRARY, path).replace(/^src\//, '');
  return inside.includes('/') ? inside.split('/')[0] : undefined;
}

/** The file of the library that an import names, undefined for a package. */
function fileOf(path: string, target: string): string | undefined {
  if (target.startsWith('#cyclone/')) return target.replace('#cyclone/', `${LIBRARY}/src/`);
  return target.startsWith('.') ? posix.join(posix.dirname(path), target) : undefined;
}

function packageOf(target: string): string {
  return target
    .split('/')
    .slice(0, target.startsWith('@') ? 2 : 1)
    .join('/');
}

describe('the folders of the library', () => {
  it('are all known to this test, and it reads their files', () => {
    const folders = new Set(library.map(({ path }) => folderOf(path)).filter((folder) => folder !== undefined));
    expect([...folders].filter((folder) => !(folder in MAY_IMPORT))).toEqual([]);
    expect([...folders]).toEqual(expect.arrayContaining(['model', 'graph', 'store', 'worker', 'client', 'nest']));
    expect(imports.length).toBeGreaterThan(50);
  });

  it('import in one direction: model ← graph ← store ← worker, client ← nest ← admin, and the command on client', () => {
    const wrong = imports.filter(({ path, target }) => {
      const from = folderOf(path);
      const file = fileOf(path, target);
      if (from === undefined || file === undefined) return false;
      const to = folderOf(file);
      return to === undefined || (to !== from && !MAY_IMPORT[from]?.includes(to));
    });
    expect(wrong).toEqual([]);
  });

  it('touch Nest in nest/ and admin/ only', () => {
    const wrong = imports.filter(({ path, target }) => {
      const from = folderOf(path);
      return target.startsWith('@nestjs/') && from !== undefined && !MAY_IMPORT_NEST.has(from);
    });
    expect(wrong).toEqual([]);
  });

  it('contain SQL in store/ only', () => {
    const wrong = library
      .filter(({ path }) => folderOf(path) !== 'store')
      .flatMap(({ path, text }) => sqlOf(text).map((sql) => ({ path, sql })));
    expect(wrong).toEqual([]);
  });
});

describe('the package', () => {
  it('has no dependency of its own', () => {
    expect(packageJson).not.toHaveProperty('dependencies');
    expect(packageJson).not.toHaveProperty('optionalDependencies');
    expect(packageJson).not.toHaveProperty('bundledDependencies');
  });

  it('imports nothing but its peers and Node', () => {
    const allowed = new Set(Object.keys(packageJson.peerDependencies ?? {}));
    const wrong = imports.filter(
      ({ path, target }) => !fileOf(path, target) && !isBuiltin(target) && !allowed.has(packageOf(target)),
    );
    expect(wrong).toEqual([]);
  });
});

describe('the sample application', () => {
  it("reaches the library through the package's name only", () => {
    expect(application.length).toBeGreaterThan(0);
    const wrong = application.flatMap(({ path, text }) =>
      importsOf(text)
        .filter((target) =>
          target.startsWith('.')
            ? !posix.join(posix.dirname(path), target).startsWith('apps/sample/src/')
            : target.startsWith('#') || target.startsWith('nestjs-cyclone/dist'),
        )
        .map((target) => ({ path, target })),
    );
    expect(wrong).toEqual([]);
  });
});

describe('the reader behind these checks', () => {
  it('sees imports of every form', () => {
    const text = `
      import a from './a.js';
      import type { B } from './b.js';
      import './c.js';
      export { d } from './d.js';
      export type * from './e.js';
      const f = await import('./f.js');
      let g: import('./g.js').G;
      // import h from './h.js';
    `;
    expect(importsOf(text)).toEqual(['./a.js', './b.js', './c.js', './d.js', './e.js', './f.js', './g.js']);
  });

  it.each([
    "tx.query('COMMIT')",
    "client.query('select 1')",
    'await db.query(`SET LOCAL statement_timeout = ${ms}`)',
    'const sql = `UPDATE ${table} AS s SET state = 1`',
    "const claim = 'SELECT * FROM cyclone_steps'",
    "const call = 'SELECT promote_ready_steps($1)'",
    "const wake = 'LISTEN cyclone'",
  ])('takes %s for SQL', (text) => {
    expect(sqlOf(text)).toHaveLength(1);
  });

  it.each([
    "throw new Error('Select a run and update its settings from the page')",
    'client.query(statements.claim)',
    "log('set timeout')",
    '// SELECT * FROM cyclone_steps',
  ])('does not take %s for SQL', (text) => {
    expect(sqlOf(text)).toEqual([]);
  });
});
