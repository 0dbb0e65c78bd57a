// oxlint-disable typescript/no-explicit-any -- any workflow
import type { WorkflowDefinition } from '../graph/workflow.js';
import type { PlanLimits } from '../graph/plan-context.js';
import type { Duration } from '../model/duration.js';
import type { HandlerDefaults, Type } from '../model/options.js';

/** A workflow class as the application knows it. */
export interface ResolvedWorkflow {
  readonly name: string;
  readonly instance: WorkflowDefinition<any, any>;
  /** DTO class of the input (R37). */
  readonly input?: Type;
  readonly runDeadline?: Duration;
}

/** Where a client finds what belongs to a workflow class, and the module's settings. */
export interface Definitions {
  /** @throws UnknownHandlerError for a class that is no workflow of this application */
  workflow(workflow: Type<WorkflowDefinition<any, any>>): ResolvedWorkflow;
  /** Why this process does not execute anything yet, as the end of a sentence; undefined when it does, or never will. */
  holdUp?(): string | undefined;
  readonly defaults: HandlerDefaults;
  readonly limits: PlanLimits;
}

/** What the clients log; Nest's Logger fits. */
export interface ClientLogger {
  warn(message: string): void;
}
