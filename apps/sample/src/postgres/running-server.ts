import { readFile, rm } from 'node:fs/promises';
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { urlOf } from './password.js';

/** SQLSTATE of a server that is starting or stopping. */
const CANNOT_CONNECT_NOW = '57P03';
/** How long it may do so. */
const PATIENCE_MS = 60_000;
/** How long a server may live without listening: at the very beginning and the very end. */
const SILENCE_MS = 3_000;

/**
 * The server that is running on a folder's data; undefined if there is none.
 *
 * A server that could not clean up, as when the machine lost power, leaves postmaster.pid behind. Its process id may be
 * somebody else's by now, and PostgreSQL would refuse to start for fear of it. So ask the port, not the process.
 */
export async function findRunningServer(folder: string): Promise<{ url: string } | undefined> {
  const data = join(folder, 'data');
  const file = join(data, 'postmaster.pid');
  for (const since = Date.now(); ; await delay(100)) {
    const lines = await readFile(file, 'utf8').catch(() => undefined);
    if (lines === undefined) return undefined;
    const [pid, , , port] = lines.split('\n');
    const url = await urlOf(folder, port ?? '');
    const answer = await ask(url);

    if (answer.dataDirectory === realpathSync(data)) return { url };
    const waited = Date.now() - since;
    if (answer.code === CANNOT_CONNECT_NOW) {
      if (waited > PATIENCE_MS) throw new Error(`PostgreSQL in ${data} neither starts nor stops.`);
    } else if (answer.dataDirectory !== undefined || !isAlive(Number(pid)) || waited > SILENCE_MS) {
      await rm(file, { force: true });
      return undefined;
    }
  }
}

async function ask(url: string): Promise<{ dataDirectory?: string; code?: string }> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  try {
    await client.connect();
    const { rows } = await client.query<{ data_directory: string }>('SHOW data_directory');
    return { dataDirectory: realpathSync(rows[0]!.data_directory) };
  } catch (error) {
    return { code: (error as { code?: string }).code };
  } finally {
    await client.end().catch(() => undefined);
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // EPERM: there is such a process, but it is not ours.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
