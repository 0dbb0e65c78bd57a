// Ends the servers that a process started and removes their folders once that process is gone, however it ended:
// the operating system closes this program's standard input then. See postgres-server.mjs.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

/** @type {Set<string>} */
const held = new Set();

for await (const line of createInterface({ input: process.stdin })) {
  const [order, folder] = line.split(/ (.*)/);
  if (!folder) continue;
  if (order === 'hold') held.add(folder);
  else held.delete(folder);
}

await Promise.all([...held].map(end));

/** @param {string} folder */
async function end(folder) {
  // The server removes this file as its last act. To ask for its process id instead would not do: where nobody
  // collects dead processes, as in many containers, the id stays taken.
  const pidFile = join(folder, 'data', 'postmaster.pid');
  if (existsSync(pidFile) && kill(Number(readFileSync(pidFile, 'utf8').split('\n')[0]))) {
    for (let waits = 0; existsSync(pidFile) && waits < 500; waits++) await delay(20);
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

/** @param {number} pid */
function kill(pid) {
  try {
    return process.kill(pid, 'SIGQUIT');
  } catch {
    // It died without the chance to remove its file.
    return false;
  }
}
