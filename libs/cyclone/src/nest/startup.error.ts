import { CycloneError, identify } from '../model/errors/cyclone-error.js';

/** The start was refused for several reasons at once (R22); a single one is thrown as it is. */
export class StartupError extends CycloneError {
  static override readonly code = 'CYCLONE_STARTUP';
  static {
    identify(this, 'StartupError');
  }
  constructor(
    /** Every reason, each a typed error that says what to do. */
    readonly problems: readonly CycloneError[],
  ) {
    const list = problems.map(({ message }) => `\n  - ${message}`).join('');
    super(`Cyclone cannot start, for ${problems.length} reasons:${list}`);
  }
}

/** What to throw for the problems of a start; undefined when there are none. */
export function startupError(problems: readonly CycloneError[]): CycloneError | undefined {
  return problems.length > 1 ? new StartupError(problems) : problems[0];
}
