import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { sleep } from '#cyclone/model/timer.js';
import type { CallPhase } from '#cyclone/store/session.js';
import type { KeyedOutcome, NewKeyedRun, NewRun } from '#cyclone/store/submit-store.js';
import type { WorkerHealth } from '#cyclone/worker/worker.js';
import type { WorkerOptions } from '#cyclone/worker/worker-options.js';

/** How long a test waits for a worker to tell something. */
const PATIENCE_MS = 150_000;

const PROGRAM = fileURLToPath(new URL('./worker-process.mjs', import.meta.url));

/** What a worker process tells: it is ready, stands at the armed point, holds a handler, has started one, or emitted an event. */
export interface Told {
  readonly event: 'ready' | 'at' | 'holding' | 'started' | 'told' | 'log';
  readonly type?: string;
  readonly call?: string;
  readonly phase?: CallPhase;
  readonly runId?: string;
  readonly node?: string;
  /** Of the backend whose call stands still. */
  readonly pid?: number;
  readonly line?: string;
}

export interface WorkerProcessOptions {
  /** Leases are renewed on the main thread, where the observer sees the calls. */
  readonly localHeart?: boolean;
}

/** A worker in a process of its own: started, armed, stopped, killed. */
export class WorkerProcess {
  /** What the worker has logged. */
  readonly log: string[] = [];
  private told: Told[] = [];
  private readonly waiting = new Map<number, { resolve(value: never): void; reject(error: Error): void }>();
  private listeners: (() => void)[] = [];
  private calls = 0;
  private errors = '';
  private over = false;
  private expected = false;
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>;

  private constructor(private readonly child: ChildProcess) {
    child.stderr?.on('data', (text) => (this.errors += String(text)));
    child.on('message', (message) => this.hear(message as Told & { id?: number; value: never; error?: string }));
    this.ended = this.end();
  }

  /** Starts the process; comes back when it is connected and takes orders, before any worker runs. */
  static async boot(database: string, { localHeart = false }: WorkerProcessOptions = {}): Promise<WorkerProcess> {
    const { CYCLONE_TEST_URL: _, NODE_OPTIONS: __, ...inherited } = process.env;
    const child = fork(PROGRAM, {
      execArgv: [],
      env: { ...inherited, CRASH_DATABASE: database, ...(localHeart ? { CRASH_LOCAL_HEART: '1' } : {}) },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    const worker = new WorkerProcess(child);
    await worker.next('ready');
    return worker;
  }

  get pid(): number {
    return this.child.pid as number;
  }

  get isAlive(): boolean {
    return !this.over;
  }

  /** Starts a worker. @param hold whether its handlers stand still and tell so. @returns the id of the worker */
  start(options: WorkerOptions = {}, hold = false): Promise<string> {
    return this.order('start', { options, hold });
  }

  /** Stops the worker in order; the process stays, and can start another one. */
  stop(): Promise<void> {
    return this.order('stop');
  }

  /** The next call of this name stands still in this phase and is told as `at`; several points may be armed. */
  arm(call: string, phase: CallPhase): Promise<void> {
    return this.order('arm', { call, phase });
  }

  /** Lets the call go on that stands still; `cut` destroys its connection first. */
  goOn(cut = false): Promise<void> {
    return this.order('goOn', { cut });
  }

  release(runId: string, node: string): Promise<void> {
    return this.order('release', { runId, node });
  }

  releaseAll(): Promise<void> {
    return this.order('releaseAll');
  }

  submit(runs: readonly NewRun[]): Promise<string[]> {
    return this.order('submit', { runs });
  }

  submitOnce(runs: readonly NewKeyedRun[]): Promise<KeyedOutcome[]> {
    return this.order('submitOnce', { runs });
  }

  beat(runId: string): Promise<void> {
    return this.order('beat', { runId });
  }

  health(): Promise<WorkerHealth> {
    return this.order('health');
  }

  /** Waits until the process tells such a thing; what came before and was not taken counts. */
  async next(event: Told['event'], of: Partial<Told> = {}): Promise<Told> {
    const limit = performance.now() + PATIENCE_MS;
    for (;;) {
      const index = this.told.findIndex(
        (told) => told.event === event && Object.entries(of).every(([key, value]) => told[key as keyof Told] === value),
      );
      if (index >= 0) return this.told.splice(index, 1)[0] as Told;
      if (this.over) throw this.death();
      if (performance.now() > limit) {
        const what = [event, ...Object.values(of)].join(' ');
        throw new Error(`The worker process never told: ${what}\n${this.log.join('\n')}`);
      }
      await this.somethingIsTold(limit - performance.now());
    }
  }

  /** Takes every event of this type that it has told, and gives their number. */
  take(type: string): number {
    const told = this.told.length;
    this.told = this.told.filter((one) => one.event !== 'told' || one.type !== type);
    return told - this.told.length;
  }

  /** SIGKILL; comes back when the process is gone. */
  async kill(): Promise<void> {
    this.expected = true;
    this.child.kill('SIGKILL');
    await this.ended;
  }

  /** SIGSTOP: the process and all its threads stand still, its connections stay open. */
  suspend(): void {
    this.child.kill('SIGSTOP');
  }

  /** SIGCONT. */
  resume(): void {
    this.child.kill('SIGCONT');
  }

  /** What it left on stderr: an unhandled rejection or an exception that ended it, nothing else is written there. */
  get stderr(): string {
    return this.errors;
  }

  private async end(): Promise<void> {
    await once(this.child, 'exit');
    this.over = true;
    for (const { reject } of this.waiting.values()) reject(this.death());
    this.waiting.clear();
    this.wakeListeners();
  }

  private order<T>(order: string, values: object = {}): Promise<T> {
    if (this.over) return Promise.reject(this.death());
    const id = ++this.calls;
    return new Promise<T>((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.child.send({ id, order, ...values });
    });
  }

  private async somethingIsTold(limitMs: number): Promise<void> {
    const limit = new AbortController();
    const told = new Promise<void>((resolve) => this.listeners.push(resolve)).then(() => limit.abort());
    await Promise.race([told, sleep(limitMs, { signal: limit.signal })]);
  }

  private hear({ id, value, error, ...told }: Told & { id?: number; value: never; error?: string }): void {
    if (id === undefined) {
      if (told.event === 'log') this.log.push(told.line ?? '');
      else this.told.push(told);
      this.wakeListeners();
      return;
    }
    const waiting = this.waiting.get(id);
    this.waiting.delete(id);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(new Error(error));
  }

  private wakeListeners(): void {
    for (const wake of this.listeners.splice(0)) wake();
  }

  private death(): Error {
    const why = this.expected ? 'was killed' : 'has died';
    return new Error(`The worker process ${why}.\n${this.errors}${this.log.join('\n')}`);
  }
}
