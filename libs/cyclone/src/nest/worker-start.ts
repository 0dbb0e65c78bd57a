import type { ResolvedCycloneOptions } from './cyclone-options.js';

/** Whether the worker of this process is still to be started: it is after every hook of the application (C10). */
export class WorkerStart {
  private pending: boolean;

  constructor({ worker }: Pick<ResolvedCycloneOptions, 'worker'>) {
    this.pending = worker !== false && worker.autoStart !== false;
  }

  /** The worker has been started. */
  done(): void {
    this.pending = false;
  }

  /** Why a run that a hook of the application waits for may not end, as the end of a sentence; undefined when nothing of this process is in its way. */
  holdUp(): string | undefined {
    if (!this.pending) return undefined;
    return (
      'the worker of this process starts only when every onModuleInit and onApplicationBootstrap has finished. ' +
      'Unless another process executes its steps, a hook that waits for it waits for ever: do not await the result there, or wait with a timeout.'
    );
  }
}
