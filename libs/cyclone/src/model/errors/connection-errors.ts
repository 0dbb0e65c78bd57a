import { CycloneError, identify, markTransient } from './cyclone-error.js';

/** Nobody got a connection in time: all of the pool were in use, or the server did not answer a new one. Nothing was sent. */
export class NoConnectionError extends CycloneError {
  static override readonly code = 'CYCLONE_NO_CONNECTION';
  static {
    identify(this, 'NoConnectionError');
    markTransient(this);
  }
  constructor(
    /** What the connection was for, for example `submit of place_order`. */
    readonly purpose: string,
    /** How long it was waited for, in milliseconds. */
    readonly waitedMs: number,
    /** `pool`: all of its connections were in use. `server`: it did not answer. */
    readonly reason: 'pool' | 'server',
    options?: ErrorOptions,
  ) {
    const waited = `${Math.round(waitedMs / 100) / 10} s`;
    super(
      reason === 'server'
        ? `The database did not answer for ${waited}, so there is no connection for the ${purpose}; nothing was sent. ` +
            `Look whether it can be reached from this process.`
        : `No connection of the DataSource's pool came free for the ${purpose} within ${waited}; nothing was sent. ` +
            `Set a larger poolSize in the DataSource's options or fewer slots in worker.queues, and look for code that keeps a ` +
            `connection while it waits for something else.`,
      options,
    );
  }
}
