import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { createDatabase, type TestDatabase } from '../support/postgres.js';
import { ROOT } from '../structure/source-files.js';

const run = promisify(execFile);
const PEERS = [
  '@nestjs/common',
  '@nestjs/core',
  '@nestjs/schedule',
  '@nestjs/typeorm',
  'class-transformer',
  'class-validator',
  'commander',
  'pg',
  'reflect-metadata',
  'rxjs',
  'typeorm',
  'typescript',
  '@types/node',
];

describe('a fresh Nest application with the packed library', () => {
  let folder: string;
  let database: TestDatabase;

  beforeAll(async () => {
    database = await createDatabase();
    folder = await mkdtemp(join(tmpdir(), 'cyclone-fresh-'));
    await cp(join(ROOT, 'test/package/fresh-application'), folder, { recursive: true });
    const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
      cwd: join(ROOT, 'libs/cyclone'),
    });
    const [archive] = JSON.parse(stdout) as [{ filename: string }];
    // The versions that this repository was locked to, so that its own cache serves them.
    const versions = await Promise.all(
      PEERS.map(async (name) => {
        const manifest = await readFile(join(ROOT, 'node_modules', name, 'package.json'), 'utf8');
        return `${name}@${(JSON.parse(manifest) as { version: string }).version}`;
      }),
    );
    const flags = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', '--save-exact'];
    await run('npm', ['install', ...flags, `./${archive.filename}`, ...versions], { cwd: folder });
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query('create table greetings (run_id bigint, text text)');
    await client.end();
  }, 300_000);

  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
    await database.drop();
  });

  it('compiles with tsc strict and runs a workflow', async () => {
    await run(process.execPath, ['node_modules/typescript/bin/tsc'], { cwd: folder });
    const { stdout } = await run(process.execPath, ['dist/main.js'], {
      cwd: folder,
      env: { ...process.env, DATABASE_URL: database.url },
    });
    const lastLine = stdout.trimEnd().split('\n').at(-1) ?? '';
    expect(JSON.parse(lastLine)).toEqual({ greeting: { text: 'Hello, world!' }, state: 'completed', created: true });
  }, 120_000);

  it('migrates with the command of the package', async () => {
    const { stdout } = await run(
      'npx',
      ['--no-install', 'nestjs-cyclone', 'migrate', '--status', '--schema', 'engine'],
      {
        cwd: folder,
        env: { ...process.env, DATABASE_URL: database.url },
      },
    );
    expect(stdout).toMatch(/pending +none/);
  }, 60_000);

  it('is loaded by a CommonJS application with require', async () => {
    const script = `const { CycloneModule, RunNotFoundError } = require('nestjs-cyclone'); console.log(typeof CycloneModule.forRoot, RunNotFoundError.code)`;
    const { stdout } = await run(process.execPath, ['--input-type=commonjs', '-e', script], { cwd: folder });
    expect(stdout.trim()).toBe('function CYCLONE_RUN_NOT_FOUND');
  }, 60_000);
});
