// Stops an embedded server when the application that started it is gone, however it went: the operating system then
// closes this process's standard input. The application stops its server the same way, by closing the pipe.
import { execFileSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Account } from './account.js';

/** What the guardian gets as its argument, as JSON. */
export interface Charge {
  pgCtl: string;
  folder: string;
  account?: Account;
  /** Whether the folder goes away with the server. */
  temporary: boolean;
}

const { pgCtl, folder, account, temporary } = JSON.parse(process.argv[2]!) as Charge;
const data = join(folder, 'data');

process.stdin.resume().once('close', () => {
  if (existsSync(join(data, 'postmaster.pid'))) {
    // "fast" ends open connections instead of waiting for them.
    const command = ['stop', '--pgdata', data, '--mode', temporary ? 'immediate' : 'fast', '--wait', '--timeout', '60'];
    execFileSync(pgCtl, command, { cwd: folder, stdio: 'ignore', ...account });
  }
  if (temporary) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});
