import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const DIST = fileURLToPath(new URL('../../apps/sample/dist', import.meta.url));

/** A program of the sample application as a process of its own. */
export interface Child {
  readonly process: ChildProcess;
  /** Everything that it has written so far, errors as well. */
  readonly output: string;
  /** Resolves with what it has written when that matches. Rejects when it ends before. */
  says(pattern: RegExp): Promise<string>;
  /** Resolves when it has ended, with its exit code or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
}

/** Starts a compiled program of the sample application. It inherits no DATABASE_URL. */
export function startProgram(file: string, args: string[], env: NodeJS.ProcessEnv): Child {
  const { DATABASE_URL: _, ...inherited } = process.env;
  const child = spawn(process.execPath, [join(DIST, file), ...args], {
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text));
  const ended = once(child, 'close').then(([code, signal]) => (signal ?? code) as number | NodeJS.Signals);

  return {
    process: child,
    ended,
    get output() {
      return output;
    },
    says(pattern) {
      return new Promise((resolve, reject) => {
        const look = () => pattern.test(output) && resolve(output);
        child.stdout.on('data', look);
        child.stderr.on('data', look);
        void ended.then(() => reject(new Error(`It ended and never said ${pattern}. It said:\n${output}`)));
        look();
      });
    },
  };
}
