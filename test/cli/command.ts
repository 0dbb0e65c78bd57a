import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { ROOT } from '../structure/source-files.js';

const COMMAND = join(ROOT, 'libs/cyclone/bin/cyclone.js');

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CallOptions {
  /** The database; without one DATABASE_URL is not set. */
  readonly url?: string;
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Called with what has come on stdout so far. */
  readonly onOutput?: (child: ChildProcessByStdio<Writable, Readable, Readable>) => void;
}

/** Runs the built command in a process of its own. */
export function cyclone(args: readonly string[], options: CallOptions = {}): Promise<Outcome> {
  return start(process.execPath, [COMMAND, ...args], options);
}

/** Runs command lines as a shell does, in which `cyclone` is the built command. */
export async function shell(script: string, options: CallOptions = {}): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'cyclone-bin-'));
  try {
    symlinkSync(COMMAND, join(folder, 'cyclone'));
    const path = `${folder}${delimiter}${process.env.PATH ?? ''}`;
    return await start('sh', ['-c', script], { ...options, env: { ...options.env, PATH: path } });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function start(
  file: string,
  args: readonly string[],
  { url, input = '', env, cwd, onOutput }: CallOptions,
): Promise<Outcome> {
  const { DATABASE_URL: _url, CYCLONE_ACTOR: _actor, CYCLONE_SCHEMA: _schema, ...inherited } = process.env;
  const child = spawn(file, args, {
    cwd,
    env: { ...inherited, ...(url === undefined ? {} : { DATABASE_URL: url }), ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    onOutput?.(child);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  child.stdin.on('error', () => undefined); // it may end without reading
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
}
