import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chown, lstat, mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { serverAccount, type Account } from './account.js';
import type { Charge } from './guardian.js';
import { createPasswordFile, urlOf } from './password.js';
import { findPrograms, type Programs } from './programs.js';
import { findRunningServer } from './running-server.js';

const run = promisify(execFile);

export interface EmbeddedServer {
  readonly url: string;
  readonly folder: string;
  /** Ends the server, unless another process had started it. */
  stop(): Promise<void>;
}

/**
 * Starts a PostgreSQL server of the application's own, on a free port of this machine only.
 * If the folder's server is running already, for another process of this application, it gives that one.
 * @param wanted the server's folder, which keeps its data from start to start; `temporary`: one that goes away with the server
 */
export async function startEmbeddedServer(wanted: string | 'temporary'): Promise<EmbeddedServer> {
  const account = await serverAccount();
  const temporary = wanted === 'temporary';
  const folder = temporary ? await temporaryFolder(account) : await persistentFolder(wanted, account);
  const programs = await findPrograms(folder, account);

  const running = await findRunningServer(folder);
  if (running) return { url: running.url, folder, stop: async () => undefined };

  const guardian = startGuardian({ pgCtl: programs.pg_ctl, folder, account, temporary });
  try {
    await createData(programs, folder, account);
    return { url: await start(programs, folder, account), folder, stop: guardian.stop };
  } catch (error) {
    await guardian.stop();
    throw error;
  }
}

async function temporaryFolder(account: Account | undefined): Promise<string> {
  const wanted = join(tmpdir(), 'cyclone-sample-');
  const folder = await mkdtemp(!account || (await canEnter(wanted, account)) ? wanted : '/var/tmp/cyclone-sample-');
  return account ? lend(folder, account) : folder;
}

/** The wanted folder; or one below /var/tmp if the account cannot reach it, as in root's home. */
async function persistentFolder(wanted: string, account: Account | undefined): Promise<string> {
  await mkdir(wanted, { recursive: true });
  if (!account) return wanted;
  if (await canEnter(wanted, account)) return lend(wanted, account);
  const elsewhere = join('/var/tmp', wanted.replaceAll(/[^\w-]+/g, '-').replace(/^-/, ''));
  await mkdir(elsewhere, { mode: 0o700 }).catch(async (error) => {
    // Anybody may create things there; only a folder of our own is as good as a new one.
    const { uid } = await lstat(elsewhere);
    if (uid !== account.uid) throw error;
  });
  return lend(elsewhere, account);
}

/** Whether the account may pass through every folder above. */
async function canEnter(folder: string, account: Account): Promise<boolean> {
  for (let above = dirname(folder); ; above = dirname(above)) {
    const { mode, uid } = await stat(above);
    if (!(mode & 0o001) && uid !== account.uid) return false;
    if (above === dirname(above)) return true;
  }
}

async function lend(folder: string, account: Account): Promise<string> {
  await chown(folder, account.uid, account.gid);
  return folder;
}

/** Creates the data folder under another name first, so that it is never there by half. */
async function createData(programs: Programs, folder: string, account: Account | undefined): Promise<void> {
  const data = join(folder, 'data');
  if (existsSync(data)) return;
  const unfinished = `${data}.new`;
  await rm(unfinished, { recursive: true, force: true });
  const password = await createPasswordFile(folder, account);
  const options = ['--username=postgres', '--encoding=UTF8', '--locale=C', '--no-sync'];
  const access = ['--auth=scram-sha-256', `--pwfile=${password}`];
  await run(programs.initdb, ['--pgdata', unfinished, ...options, ...access], { cwd: folder, ...account });
  await rename(unfinished, data);
}

async function start(programs: Programs, folder: string, account: Account | undefined): Promise<string> {
  const log = join(folder, 'postgres.log');
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const url = await urlOf(folder, port);
    const settings = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200`;
    const command = [
      'start',
      '--pgdata',
      join(folder, 'data'),
      '--log',
      log,
      '--options',
      settings,
      '--wait',
      '--silent',
    ];
    try {
      await rm(log, { force: true });
      await run(programs.pg_ctl, command, { cwd: folder, ...account });
      return url;
    } catch (error) {
      const text = await readFile(log, 'utf8').catch(() => String(error));
      // Somebody may take the port between our look and the start.
      if (text.includes('could not bind') && attempt < 5) continue;
      throw new Error(
        `PostgreSQL did not start. The end of ${log}:\n${text.trim().split('\n').slice(-8).join('\n')}\n` +
          `Its data lies in ${folder}: delete that folder to begin anew, or set DATABASE_URL to a server of yours.`,
        { cause: error },
      );
    }
  }
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => probe.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

function startGuardian(charge: Charge): { stop(): Promise<void> } {
  const program = fileURLToPath(new URL('./guardian.js', import.meta.url));
  // Detached: Ctrl-C reaches every process of the terminal, but the server must outlive the application.
  const child = spawn(process.execPath, [program, JSON.stringify(charge)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.unref();
  (child.stdin as Socket).unref();
  const ended = new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`PostgreSQL in ${charge.folder} could not be stopped.`));
    });
  });
  ended.catch(() => undefined); // whoever calls stop() hears of it
  return {
    async stop() {
      child.ref();
      child.stdin!.end();
      await ended;
    },
  };
}
