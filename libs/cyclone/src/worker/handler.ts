import type { StepContext } from '../graph/step-context.js';
import type { ResolvedOptions } from '../model/options.js';

/** A method that executes steps of one kind, as the worker calls it. */
export interface RegisteredHandler {
  readonly kind: string;
  readonly nodeType: 'step' | 'action';
  /** Its place in the application, for messages: `OrderSteps.charge`. */
  readonly where: string;
  readonly options: ResolvedOptions;
  /** Calls the method. `input` is what the database holds; what the call returns or resolves to is the output. */
  invoke(input: unknown, context: StepContext): unknown;
}
