import type { CycloneError } from '../model/errors/cyclone-error.js';
import type { ResolvedOptions, Type } from '../model/options.js';
import type { HandlerMetadata } from '../graph/metadata.js';
import type { WorkflowDefinition, WorkflowOptions } from '../graph/workflow.js';
import type { ListenerMetadata } from './listener-metadata.js';
import type { ProviderHost } from './provider-host.js';

/** A method of a provider. */
export interface HostedMethod {
  readonly host: ProviderHost;
  readonly key: string | symbol;
  /** `Class.method`, for messages. */
  readonly where: string;
}

/** A `@Step()` or `@Action()` method that a provider serves. */
export interface DiscoveredHandler extends HostedMethod {
  readonly metadata: HandlerMetadata;
  readonly options: ResolvedOptions;
}

/** A `@Workflow()` class that is provided. */
export interface DiscoveredWorkflow {
  readonly name: string;
  readonly target: Type;
  // oxlint-disable-next-line typescript/no-explicit-any -- whatever it takes and gives
  readonly instance: WorkflowDefinition<any, any>;
  readonly options: Partial<WorkflowOptions>;
}

/** An `@OnStepEvent()` method. */
export interface DiscoveredListener extends HostedMethod {
  readonly metadata: ListenerMetadata;
}

/** What the providers of an application hold for one Cyclone. */
export interface Discovery {
  /** By kind. */
  readonly handlers: ReadonlyMap<string, DiscoveredHandler>;
  /** By class, the key under which it is submitted. */
  readonly workflows: ReadonlyMap<unknown, DiscoveredWorkflow>;
  readonly listeners: readonly DiscoveredListener[];
  /** Everything that is wrong with them (R22). */
  readonly problems: readonly CycloneError[];
  /** What the application should hear but may live with. */
  readonly warnings: readonly string[];
}
