import type { HandlerMetadata } from './metadata.js';

/** Phantom keys: they carry types and do not exist at run time. */
declare const IN: unique symbol;
declare const OUT: unique symbol;

/** A reference to a `@Step()` method: what it takes and gives, without touching the container. Get it from `stepsOf`. */
export interface StepHandle<I, O> {
  /** The registered name of the handler. */
  readonly kind: string;
  readonly [IN]: (input: I) => void;
  readonly [OUT]: O;
}

/** A reference to an `@Action()` method. */
export interface ActionHandle<I> {
  readonly kind: string;
  readonly output: 'none';
  readonly [IN]: (input: I) => void;
}

/** A node of a graph under construction. */
export interface Node {
  /** Its name, unique in its graph. */
  readonly node: string;
}

/** A node with an output. */
export interface StepNode<out O> extends Node {
  readonly [OUT]: O;
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
