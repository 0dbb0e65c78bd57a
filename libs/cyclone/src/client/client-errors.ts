import { CycloneError, identify, markTransient } from '../model/errors/cyclone-error.js';

/** The connection to the database could not be had, or broke under a call. */
export class ConnectionLostError extends CycloneError {
  static override readonly code = 'CYCLONE_CONNECTION_LOST';
  static {
    identify(this, 'ConnectionLostError');
    markTransient(this);
  }
  constructor(
    /** What was asked for, for example `submit of place_order`. */
    readonly operation: string,
    /** `nothing`: it did not happen, asking again is safe. `unknown`: it may have happened although its answer is lost. */
    readonly outcome: 'nothing' | 'unknown',
    options?: ErrorOptions,
  ) {
    super(
      outcome === 'nothing'
        ? `There is no connection to the database, so the ${operation} did not happen. It is safe to try again.`
        : `The connection to the database broke during the ${operation}, so it is unknown whether it happened. ` +
            `Look for its effect before you try again; a submit with submitOnce can simply be repeated.`,
      options,
    );
  }
}

/** The application shuts down: nobody waits for runs any more, nor for a key of submitOnce that another transaction holds. */
export class ClientClosedError extends CycloneError {
  static override readonly code = 'CYCLONE_CLIENT_CLOSED';
  static {
    identify(this, 'ClientClosedError');
  }
  constructor() {
    super(
      'The application shuts down and waits for no run any more, nor for a key that another transaction holds. ' +
        'Runs go on; look at them, or submit again, from another process.',
    );
  }
}
