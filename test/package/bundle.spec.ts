import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build, type BuildOptions } from 'esbuild';
import ts from 'typescript';
import { NOT_INSTALLED } from './recipes/esbuild/not-installed.mjs';
import { createDatabase, type TestDatabase } from '../support/postgres.js';
import { ROOT } from '../structure/source-files.js';

const run = promisify(execFile);

interface Answer {
  readonly calls: number;
  readonly generation: number;
  readonly renewals: { readonly by: string; readonly reason: string | null };
}

let folder: string;
const databases: TestDatabase[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cyclone-bundle-'));
  const source = await readFile(join(ROOT, 'test/package/bundled-application/main.ts'), 'utf8');
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      experimentalDecorators: true,
      emitDecoratorMetadata: true, // esbuild has none
    },
  });
  await writeFile(join(folder, 'main.js'), outputText);
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  for (const database of databases) await database.drop();
});

/** Bundles the application whole, as docs/bundling.md says, and runs it where no package can be found. */
async function runBundle(name: string, options: BuildOptions, ...args: string[]): Promise<Answer & { log: string }> {
  const outdir = join(folder, name);
  await build({
    bundle: true,
    platform: 'node',
    format: 'cjs',
    outdir,
    external: NOT_INSTALLED,
    define: { 'import.meta.url': 'importMetaUrl' },
    banner: { js: `const importMetaUrl = require('node:url').pathToFileURL(__filename).href;` },
    nodePaths: [join(ROOT, 'node_modules')],
    logLevel: 'error',
    ...options,
  });
  const database = await createDatabase();
  databases.push(database);
  const env = { ...process.env, DATABASE_URL: database.url, NODE_PATH: '' };
  const { stdout, stderr } = await run(process.execPath, [join(outdir, 'main.js'), ...args], { env });
  return { ...(JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as Answer), log: stdout + stderr };
}

describe('an application that esbuild bundles whole (F4, R41)', () => {
  const main = () => join(folder, 'main.js');

  it('brings its schema up, and runs a step of ten leases once, with and without the lease thread beside it', async () => {
    const [alone, beside] = await Promise.all([
      runBundle('alone', { entryPoints: { main: main() } }),
      runBundle(
        'beside',
        { entryPoints: { main: main(), 'lease-thread': 'nestjs-cyclone/lease-thread' }, minify: true },
        'block',
      ),
    ]);
    expect(alone).toMatchObject({ calls: 1, generation: 1, renewals: { by: 'main thread' } });
    expect(alone.renewals.reason).toContain('nestjs-cyclone/lease-thread as lease-thread.js beside the bundle');
    expect(alone.log).toContain(alone.renewals.reason);
    expect(beside).toMatchObject({ calls: 1, generation: 1, renewals: { by: 'thread', reason: null } });
  });
});
