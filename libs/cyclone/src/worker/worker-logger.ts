import type { StepLogger } from '../graph/step-context.js';
import { describeFailure } from '../model/failure.js';

/** Where the worker writes what went wrong on the side. Nest's Logger fits. */
export interface WorkerLogger {
  log(message: string): void;
  warn(message: string): void;
  error(message: string, stack?: string): void;
  debug?(message: string): void;
  /** Makes `ctx.logger` for one step; without it `ctx.logger` writes here, with the ids before each message. */
  forStep?(runId: string, node: string): StepLogger;
}

/** At most one line in this time, whatever goes wrong (R21). */
const QUIET_MS = 1_000;

/** Logs what goes wrong in the background: never more than a line a second, never a query parameter, and never throwing. */
export class ProblemLog {
  private loggedAt = -Infinity;
  private suppressed = 0;

  constructor(private readonly logger: WorkerLogger) {}

  report(what: string, error?: unknown): void {
    const now = performance.now();
    if (now - this.loggedAt < QUIET_MS) {
      this.suppressed++;
      return;
    }
    const why = error === undefined ? '' : `: ${describeFailure(error).error}`;
    const more = this.suppressed === 0 ? '' : ` (and ${this.suppressed} more problems since the last message)`;
    this.loggedAt = now;
    this.suppressed = 0;
    this.notice(`${what}${why}${more}`);
  }

  /** Logs what is said once and stays so, whatever was said a moment ago. */
  notice(message: string): void {
    try {
      this.logger.warn(message);
    } catch {
      this.suppressed++; // a logger that throws harms nobody; the next message counts this one
    }
  }
}

/** A logger that puts the ids of a step before each message. */
export function stepLogger(logger: WorkerLogger, runId: string, node: string): StepLogger {
  if (logger.forStep) return logger.forStep(runId, node);
  const line = (message: unknown, rest: readonly unknown[]): string =>
    `[${runId}:${node}] ${[message, ...rest].map(String).join(' ')}`;
  return {
    log: (message, ...rest) => logger.log(line(message, rest)),
    warn: (message, ...rest) => logger.warn(line(message, rest)),
    error: (message, ...rest) => logger.error(line(message, rest)),
    debug: (message, ...rest) => logger.debug?.(line(message, rest)),
    verbose: (message, ...rest) => logger.debug?.(line(message, rest)),
  };
}
