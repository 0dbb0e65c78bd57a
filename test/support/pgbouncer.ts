import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sleep } from '#cyclone/model/timer.js';

const run = promisify(execFile);
const PLACES = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer', '/usr/local/bin/pgbouncer', '/opt/homebrew/bin/pgbouncer'];

/** The program; undefined where it is not installed. */
export const pgbouncerProgram: string | undefined = [process.env.PGBOUNCER ?? '', ...PLACES].find(
  (path) => path !== '' && existsSync(path),
);

/** `describe` where pgbouncer is installed; elsewhere the tests are skipped with a notice. */
export function describeWithPgbouncer(name: string, tests: () => void): void {
  if (pgbouncerProgram) {
    describe(name, tests);
    return;
  }
  process.stderr.write(`Skipped, because pgbouncer is not installed (Debian: apt-get install pgbouncer): ${name}\n`);
  describe.skip(name, tests);
}

export interface Pgbouncer {
  /** The same database by way of the pooler. */
  through(url: string): string;
  stop(): Promise<void>;
}

export interface PgbouncerOptions {
  /** How connections of clients share those of the server. @default 'transaction' */
  readonly mode?: 'transaction' | 'session' | 'statement';
  /** Lines for the section [pgbouncer], which win over the default ones. */
  readonly settings?: Readonly<Record<string, string | number>>;
}

/** Starts a pgbouncer before the server of `url`; every user and every database passes. */
export async function startPgbouncer(url: string, options: PgbouncerOptions = {}): Promise<Pgbouncer> {
  if (!pgbouncerProgram) throw new Error('pgbouncer is not installed.');
  const server = new URL(url);
  const port = await freePort();
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'any',
    pool_mode: options.mode ?? 'transaction',
    max_client_conn: 500,
    default_pool_size: 20,
    ignore_startup_parameters: 'extra_float_digits,options',
    ...options.settings,
  };
  const folder = await mkdtemp(join(tmpdir(), 'cyclone-pgbouncer-'));
  const file = join(folder, 'pgbouncer.ini');
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  const login = `user=${server.username} password=${server.password}`;
  await writeFile(
    file,
    `[databases]\n* = host=${server.hostname} port=${server.port} ${login}\n[pgbouncer]\n${lines.join('\n')}\n`,
  );
  await chmod(folder, 0o755);
  const child = spawn(pgbouncerProgram, [file], { stdio: ['ignore', 'pipe', 'pipe'], ...(await unprivileged()) });
  let log = '';
  const note = (text: Buffer): void => void (log += text.toString());
  child.stdout.on('data', note);
  child.stderr.on('data', note);
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  while (!(await answers(port))) {
    if (child.exitCode !== null) {
      await stop();
      throw new Error(`pgbouncer could not start:\n${log}`);
    }
    await sleep(20);
  }
  return {
    through(target) {
      const way = new URL(target);
      way.hostname = '127.0.0.1';
      way.port = String(port);
      return way.href;
    },
    stop,
  };
}

/** pgbouncer refuses to run as root. */
async function unprivileged(): Promise<{ uid?: number; gid?: number }> {
  if (process.getuid?.() !== 0) return {};
  const id = async (flag: string): Promise<number> => Number((await run('id', [flag, 'nobody'])).stdout);
  return { uid: await id('-u'), gid: await id('-g') };
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
