import { Logger } from '@nestjs/common';
import type { StepLogger } from '../graph/step-context.js';
import type { WorkerLogger } from '../worker/worker-logger.js';

/** Nest's Logger for one Cyclone. */
export class CycloneLogger extends Logger implements WorkerLogger {
  constructor(name: string | undefined) {
    super(name === undefined ? 'Cyclone' : `Cyclone ${name}`);
  }

  /** What a handler gets as `ctx.logger`: the ids of its step are the context of every line. */
  forStep(runId: string, node: string): StepLogger {
    return new Logger(`${runId}:${node}`);
  }
}
