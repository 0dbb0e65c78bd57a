// oxlint-disable typescript/no-explicit-any -- inference over every workflow
import type { Duration } from '../model/duration.js';
import type { Type } from '../model/options.js';
import type { WorkflowBuilder } from './builder.js';
import type { Node, StepNode } from './handle.js';
import type { StoredOutput } from './stored.js';

/**
 * A workflow class: `define` describes the graph of a run for its input. It must be pure: the same input gives the same graph.
 * `Out` is what the last step returns; submitters get it as it is stored, with a string for a Date.
 */
export interface WorkflowDefinition<In, Out> {
  /** @returns the node whose output is the result of the run, or nothing */
  define: (builder: WorkflowBuilder, input: In) => StepNode<StoredOutput<Out>> | void;
}

/** Options of `@Workflow()`. */
export interface WorkflowOptions<In = any> {
  /**
   * Unique in the application. It is stored with every run, and half of the key of `submitOnce`: keep it when you rename the class, and
   * write it as a text, because a build tool may change what the class is called (R40).
   */
  readonly name: string;
  /** DTO class of the input: `define` gets a validated instance of it (R37). */
  readonly input?: Type<In>;
  /** How long a run may take from its start until it fails (R27). @default no limit */
  readonly runDeadline?: Duration;
  /** The `name` of the CycloneModule that the workflow belongs to. @default the unnamed one */
  readonly cyclone?: string;
}

/** What a workflow takes. */
export type WorkflowInput<W> = W extends { define(builder: WorkflowBuilder, input: infer I): unknown } ? I : never;

/** What a workflow gives: void when its `define` returns no node. */
export type WorkflowOutput<W> = W extends { define(...args: any[]): infer R }
  ? [Extract<R, Node>] extends [never]
    ? void
    : Extract<R, Node> extends StepNode<infer O>
      ? O
      : void
  : void;
