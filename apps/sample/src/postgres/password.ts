import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chown, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Account } from './account.js';

/** Lies beside the server's data; only its owner can read it, as nobody else on this machine may become the server's superuser. */
const fileIn = (folder: string): string => join(folder, 'password');

/**
 * The file with the password of a server that is about to be created, for initdb.
 * @param account who runs initdb, and so must be able to read it
 */
export async function createPasswordFile(folder: string, account: Account | undefined): Promise<string> {
  const file = fileIn(folder);
  await writeFile(file, randomBytes(24).toString('hex'), { mode: 0o600 });
  if (account) await chown(file, account.uid, account.gid);
  return file;
}

/**
 * The connection string of the server in a folder.
 * @throws Error when its data are there and its password is not
 */
export async function urlOf(folder: string, port: number | string): Promise<string> {
  const file = fileIn(folder);
  if (!existsSync(file)) {
    throw new Error(
      `The password of PostgreSQL is not in ${file}. Delete the folder ${folder} to begin anew, or set DATABASE_URL to a server of yours.`,
    );
  }
  return `postgres://postgres:${(await readFile(file, 'utf8')).trim()}@127.0.0.1:${port}/postgres`;
}
