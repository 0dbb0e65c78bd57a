import { jest } from '@jest/globals';
import { once } from 'node:events';
import { existsSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
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

/** Addresses of this machine, other than 127.0.0.1, on which somebody listens. */
async function reachableBeside127(port: number): Promise<string[]> {
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  const reachable: string[] = [];
  for (const { address, scopeid } of addresses) {
    if (address === '127.0.0.1' || (scopeid ?? 0) > 0) continue;
    const socket = connect(port, address);
    await once(socket, 'connect').then(
      () => reachable.push(address),
      () => undefined,
    );
    socket.destroy();
  }
  return reachable;
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

    // F29: nobody else on this machine gets in, and nobody from another one.
    const [, databaseUrl = ''] = /DATABASE_URL=(\S+)/.exec(message)!;
    const [, application = ''] = /Application +(\S+)/.exec(message)!;
    const { port, password } = new URL(databaseUrl);
    expect(password).toMatch(/^[0-9a-f]{48}$/);
    expect(message.replace(databaseUrl, '')).not.toContain(password);
    const without = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${port}/postgres`, password: '' });
    await expect(without.connect()).rejects.toThrow(/password/);
    expect(statSync(join(folder, 'password')).mode & 0o077).toBe(0);
    expect(await reachableBeside127(Number(new URL(application).port))).toEqual([]);

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
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
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
