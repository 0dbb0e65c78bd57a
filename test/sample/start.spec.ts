import { jest } from '@jest/globals';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDatabase } from '../support/postgres.js';
import { startProgram, type Child } from './child.js';

const children: Child[] = [];
function start(env: NodeJS.ProcessEnv): Child {
  const child = startProgram('main.js', [], { PORT: '0', ...env });
  children.push(child);
  return child;
}

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cyclone-sample-'));
});
afterAll(async () => {
  for (const child of children) child.process.kill('SIGKILL');
  await Promise.all(children.map(({ ended }) => ended));
  await rm(folder, { recursive: true, force: true });
});

/** What the line that begins with `curl` in the start-up message would send. */
function curl(output: string): Promise<Response> {
  const [, url, body] = /curl -s (\S+\/orders) -H 'Content-Type: application\/json' -d '(.+)'/.exec(output)!;
  return fetch(url!, { method: 'POST', headers: { 'content-type': 'application/json' }, body: body! });
}

jest.setTimeout(120_000);

describe('npm start', () => {
  it('brings its own PostgreSQL, prints a line that works, stops all of it, and keeps the orders', async () => {
    const pidFile = join(folder, 'data/postmaster.pid');
    const first = start({ POSTGRES_FOLDER: folder });
    const message = await first.says(/Ctrl-C/);
    const response = await curl(message);
    expect(response.status).toBe(202);
    const { id } = (await response.json()) as { id: string };
    expect(existsSync(pidFile)).toBe(true);

    first.process.kill('SIGINT');
    expect(await first.ended).toBe(0);
    expect(existsSync(pidFile)).toBe(false);
    expect(first.output).not.toMatch(/error/i);

    const second = start({ POSTGRES_FOLDER: folder });
    const [url] = /http:\/\/\S+/.exec(await second.says(/Ctrl-C/))!;
    expect((await fetch(`${url}/orders/${id}`)).status).toBe(200);
    second.process.kill('SIGTERM');
    expect(await second.ended).toBe(0);
    expect(existsSync(pidFile)).toBe(false);
  });

  it('uses the database that DATABASE_URL names, and says what to do about a port that is taken', async () => {
    const database = await createDatabase();
    const taken = createServer().listen(0);
    try {
      const { port } = taken.address() as AddressInfo;
      const child = start({ DATABASE_URL: database.url, PORT: String(port) });
      expect(await child.ended).toBe(1);
      expect(child.output).toContain(`${port}. Choose another port: PORT=`);
    } finally {
      taken.close();
      await database.drop();
    }
  });

  it('refuses a PORT that is none', async () => {
    const child = start({ PORT: 'http' });
    expect(await child.ended).toBe(1);
    expect(child.output).toContain('PORT is "http"');
  });
});
