import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as internal from '#cyclone/index.js';
import * as published from 'nestjs-cyclone';
import { ROOT, sourceFiles } from './source-files.js';

const FOLDER = join(ROOT, 'libs/cyclone');

interface Manifest {
  exports: Record<string, string | Record<string, string>>;
  bin: Record<string, string>;
  typesVersions: Record<string, Record<string, string[]>>;
}
const manifest = JSON.parse(readFileSync(join(FOLDER, 'package.json'), 'utf8')) as Manifest;

describe('the published package', () => {
  const packed = JSON.parse(
    execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      cwd: FOLDER,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      shell: process.platform === 'win32',
    }),
  ) as { files: { path: string }[] }[];
  const files = packed.flatMap((archive) => archive.files.map((file) => file.path));

  it('contains every file that its entry points and commands name', () => {
    const entryPoints = Object.values(manifest.exports).flatMap((entry) =>
      typeof entry === 'string' ? [entry] : Object.values(entry),
    );
    const named = [...entryPoints, ...Object.values(manifest.bin)].map((file) => file.replace('./', ''));
    expect(files).toEqual(expect.arrayContaining(named));
  });

  it('says the same to a resolution that knows no exports (F36)', () => {
    const { '.': main, './admin': admin } = manifest.exports as Record<string, Record<string, string>>;
    expect(manifest).toMatchObject({ main: main?.['default'], types: main?.['types'] });
    expect(manifest.typesVersions['*']).toEqual({ admin: [admin?.['types']] });
  });

  it('contains every migration in a module, so that an application needs nothing but the package', async () => {
    expect(files).toContain('dist/store/migration-texts.js');
    const texts = await import('#cyclone/store/migration-texts.js');
    const shipped = { '': texts.MIGRATION_TEXTS, functions: texts.FUNCTION_TEXTS };
    for (const [folder, listed] of Object.entries(shipped)) {
      const there = join(ROOT, 'migrations', folder);
      const names = readdirSync(there).filter((file) => file.endsWith('.sql'));
      expect(listed.map(({ name }) => `${name}.sql`)).toEqual(names.toSorted());
      for (const { name, sql } of listed) expect(sql).toBe(readFileSync(join(there, `${name}.sql`), 'utf8'));
    }
  });

  it('reads no file at run time, because a bundle has none beside it (F4)', () => {
    const readers = sourceFiles('libs/cyclone/src').filter(({ text }) => /'(node:)?fs(\/promises)?'/.test(text));
    expect(readers.map(({ path }) => path)).toEqual([]);
  });

  it('contains the license, and neither specs nor what only the build reads', () => {
    expect(files).toContain('LICENSE');
    expect(files.filter((file) => /\.spec\.|\.tsbuildinfo$|^src\/|(?<!\.d)\.ts$/.test(file))).toEqual([]);
  });

  it('is loaded once, whether by its name or by the path of an internal module', () => {
    expect(Object.keys(published).length).toBeGreaterThan(0);
    const internals: Record<string, unknown> = { ...internal };
    for (const [name, value] of Object.entries(published)) expect(internals[name]).toBe(value);
  });

  it('has one license text with the repository', () => {
    expect(existsSync(join(ROOT, 'LICENSE'))).toBe(true);
    expect(readFileSync(join(FOLDER, 'LICENSE'), 'utf8')).toBe(readFileSync(join(ROOT, 'LICENSE'), 'utf8'));
  });
});
