import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../structure/source-files.js';
import { compile, emit, exportsOf } from '../support/compiler.js';
import { createDatabase } from '../support/postgres.js';
import { SURROUNDINGS } from './pages.js';

/** What a reader imports without being told. */
const PACKAGES = ['nestjs-cyclone', '@nestjs/common', '@nestjs/typeorm', 'typeorm'];
const available = exportsOf(PACKAGES);

const pages = ['README.md', 'CONTRIBUTING.md', 'libs/cyclone/README.md', 'bench/README.md', ...below('docs')];
function below(folder: string): string[] {
  const files = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  return files.filter((file) => file.endsWith('.md')).map((file) => join(folder, file));
}

function blocksOf(page: string, language: string): string[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  return [...text.matchAll(new RegExp(`^\`\`\`(?:${language})\\n(.*?)^\`\`\`$`, 'gms'))].map(
    ([, block]) => block ?? '',
  );
}

/** The TypeScript of a page as one module: its blocks, and around them what it takes from its reader. */
function moduleOf(page: string): string | undefined {
  const blocks = blocksOf(page, 'ts|typescript');
  if (blocks.length === 0) return undefined;
  const { before = '', beforeBlock = {}, after = '' } = SURROUNDINGS[page] ?? {};
  const code = [before, ...blocks.map((block, index) => (beforeBlock[index] ?? '') + block), after].join('\n');
  return `${importsFor(code)}${code}\nexport {};\n`;
}

function importsFor(code: string): string {
  const made = new Set(
    [...code.matchAll(/^import [^;]*?\{([^}]*)\}/gm)].flatMap(([, names = '']) =>
      names.split(',').map((name) => name.replace(/^\s*type\s+|^.* as /, '').trim()),
    ),
  );
  const used = new Set(code.match(/\b[A-Za-z]\w*\b/g));
  const names = [...used].filter((name) => available.has(name) && !made.has(name));
  const declared = new RegExp(`\\b(?:class|interface|const|type) (${names.join('|')})\\b`, 'g');
  for (const [, name = ''] of code.matchAll(declared)) names.splice(names.indexOf(name), 1);
  return names.map((name) => `import { ${name} } from '${available.get(name)}';\n`).join('');
}

const modules = new Map(
  pages.flatMap((page) => {
    const code = moduleOf(page);
    return code === undefined ? [] : [[page, code] as const];
  }),
);

describe('the TypeScript of the pages (F33)', () => {
  const nameOf = (page: string): string => `docs-${page.replaceAll(/\W+/g, '-')}.ts`;
  let complaints: ReturnType<typeof compile>;
  beforeAll(() => {
    complaints = compile(Object.fromEntries([...modules].map(([page, code]) => [nameOf(page), code])));
  });

  it('is found', () => {
    expect(modules.size).toBeGreaterThan(7);
    expect(Object.keys(SURROUNDINGS).filter((page) => !modules.has(page))).toEqual([]);
  });

  it.each([...modules.keys()])('compiles: %s', (page) => {
    const lines = modules.get(page)?.split('\n') ?? [];
    const found = complaints[nameOf(page)]?.map(({ line, text }) => `${lines[line - 1]}\n${text}`);
    expect(found).toEqual([]);
  });

  it('runs: README.md', async () => {
    // Below the repository, where its imports are found.
    const folder = mkdtempSync(join(ROOT, 'node_modules/.cache-docs-'));
    const database = await createDatabase();
    try {
      const file = join(folder, 'readme.mjs');
      writeFileSync(file, emit('readme.ts', modules.get('README.md') ?? ''));
      const env = { ...process.env, DATABASE_URL: database.url };
      const { stdout } = await promisify(execFile)(process.execPath, [file], { env });
      expect(stdout).toContain(`{ amount: 42, orderId: 'order-1' } [ { node: 'charge', amount: 42 } ]`);
    } finally {
      await database.drop();
      rmSync(folder, { recursive: true });
    }
  });
});

describe('what else the pages show (F33)', () => {
  // Command lines and SQL of the operations and the sample are run by the specs of test/cli and test/sample.
  it('is JSON that can be read', () => {
    const blocks = pages.flatMap((page) => blocksOf(page, 'json'));
    expect(blocks.length).toBeGreaterThan(0);
    for (const block of blocks) expect(() => JSON.parse(block)).not.toThrow();
  });

  it('is shell that a shell understands', async () => {
    const scripts = pages.map((page) => blocksOf(page, 'bash|sh').join('\n')).filter((script) => script !== '');
    expect(scripts.length).toBeGreaterThan(5);
    for (const script of scripts) await promisify(execFile)('sh', ['-n', '-c', script]);
  });
});
