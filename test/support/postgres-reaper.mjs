// Ends the servers that a process started and removes their folders once that process is gone, however it ended:
// the operating system closes this program's standard input then. See postgres-server.mjs.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** @type {Set<string>} */
const held = new Set();

for await (const line of createInterface({ input: process.stdin })) {
  const [order, folder] = line.split(/ (.*)/);
  if (!folder) continue;
  if (order === 'hold') held.add(folder);
  else held.delete(folder);
}

for (const folder of held) {
  const pid = postmaster(folder);
  if (pid !== undefined) {
    process.kill(pid, 'SIGQUIT');
    while (isAlive(pid)) await new Promise((resolve) => setImmediate(resolve));
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

/** @param {string} folder */
function postmaster(folder) {
  try {
    const pid = Number(readFileSync(join(folder, 'data', 'postmaster.pid'), 'utf8').split('\n')[0]);
    return pid > 0 && isAlive(pid) ? pid : undefined;
  } catch {
    // Without that file the server is not running.
    return undefined;
  }
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
