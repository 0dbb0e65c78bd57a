// oxlint-disable typescript/no-explicit-any -- inference over every handle
import type { HandlerMetadata } from './metadata.js';
import type { StoredOutput } from './stored.js';

// Properties that begin with ✖ carry types and do not exist at run time. The compiler's error reads their names where they are missing.

/** A reference to a `@Step()` method: what it takes and gives, without touching the container. Get it from `stepsOf`. */
export interface StepHandle<I, O> {
  /** The registered name of the handler. */
  readonly kind: string;
  readonly '✖ a handle from stepsOf(Class)': (input: I) => void;
  readonly '✖ a step; add an action with builder.action()': O;
}

/** A reference to an `@Action()` method. */
export interface ActionHandle<I> {
  readonly kind: string;
  readonly output: 'none';
  readonly '✖ a handle from stepsOf(Class)': (input: I) => void;
  readonly '✖ an action; add a step with builder.step()': true;
}

/** What can be enqueued. */
export type AnyHandle = StepHandle<any, any> | ActionHandle<any>;
/** What a handle takes; of one of several, what all of them take. */
export type HandleInput<H> = [H] extends [{ readonly '✖ a handle from stepsOf(Class)': (input: infer I) => void }]
  ? I
  : never;
/** What a handle gives, as stored: void for an action. */
export type HandleOutput<H> = [H] extends [never]
  ? unknown
  : H extends StepHandle<any, infer O>
    ? StoredOutput<O>
    : void;

/** A node of a graph under construction. */
export interface Node {
  /** Its name, unique in its graph. */
  readonly node: string;
}

/** A node with an output. */
export interface StepNode<out O> extends Node {
  readonly '✖ an output; an action has none': O;
}

/** In the global registry, so that a handle of one copy of the package is a handle in another. */
const HANDLER = Symbol.for('nestjs-cyclone:handler');

/** @internal A handle is plain data: its metadata is not enumerable, so that logs and JSON show the kind only. */
export function createHandle(metadata: HandlerMetadata): object {
  const handle = metadata.nodeType === 'action' ? { kind: metadata.kind, output: 'none' } : { kind: metadata.kind };
  return Object.freeze(Object.defineProperty(handle, HANDLER, { value: metadata }));
}

/** @internal The metadata behind a handle; undefined for anything else. */
export function metadataOf(handle: unknown): HandlerMetadata | undefined {
  return typeof handle === 'object' && handle !== null
    ? (handle as { [HANDLER]?: HandlerMetadata })[HANDLER]
    : undefined;
}
