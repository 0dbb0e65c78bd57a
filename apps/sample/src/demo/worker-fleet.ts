import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { WorkerOptions } from 'nestjs-cyclone';
import type { Settings } from '../settings.js';

const PROGRAM = fileURLToPath(new URL('./worker.js', import.meta.url));
/** After so many workers that died by themselves, something is wrong with all of them. */
const MAX_ACCIDENTS = 3;

interface Member {
  readonly id: string;
  readonly process: ChildProcess;
  killed: boolean;
  output: string;
}

/** A number of worker processes. Who dies is replaced. */
export class WorkerFleet {
  kills = 0;
  /** Set when workers die although nobody kills them. */
  failure?: Error;
  private readonly members = new Set<Member>();
  /** How many processes so far. */
  started = 0;
  private accidents = 0;
  private stopping = false;

  constructor(
    private readonly size: number,
    private readonly settings: Partial<Settings>,
    private readonly worker: WorkerOptions,
  ) {}

  start(): void {
    while (this.members.size < this.size) this.add();
  }

  /** The lease owners among the living. */
  get ids(): string[] {
    return [...this.members].filter(({ killed }) => !killed).map(({ id }) => id);
  }

  /** `kill -9`: no signal handler runs, nothing is given back. */
  kill(id: string): void {
    for (const member of this.members) {
      if (member.id !== id || member.killed) continue;
      member.killed = true;
      this.kills++;
      member.process.kill('SIGKILL');
    }
  }

  /** Lets every worker finish what it has begun. Resolves when all processes are gone. */
  async stop(): Promise<void> {
    this.stopping = true;
    await Promise.all([...this.members].map(stopProcess));
  }

  private add(): void {
    const id = `worker-${++this.started}`;
    const settings = { ...this.settings, worker: { ...this.worker, id } };
    const child = fork(PROGRAM, [JSON.stringify(settings)], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
    const member: Member = { id, process: child, killed: false, output: '' };
    this.members.add(member);
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.on('data', (text) => (member.output = (member.output + text).slice(-4_000)));
    }
    child.once('error', (error) => (this.failure = error));
    child.once('exit', () => this.replace(member));
  }

  private replace(member: Member): void {
    this.members.delete(member);
    if (this.stopping) return;
    if (!member.killed && ++this.accidents === MAX_ACCIDENTS) {
      this.failure = new Error(`Workers die by themselves. The last one said:\n${member.output || '(nothing)'}`);
    }
    if (!this.failure) this.add();
  }
}

/** Closing the channel asks a worker to stop. One that does not is killed. */
async function stopProcess({ process: child }: Member): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  if (child.connected) child.disconnect();
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
  await gone;
  clearTimeout(timer);
}
