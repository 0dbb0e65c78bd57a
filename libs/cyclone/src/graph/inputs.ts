import type { Node, StepNode } from './handle.js';
import type { Stored } from './stored.js';

declare const VALUE: unique symbol;

/** Where a node's input comes from: a literal, an upstream output, or both mixed (R4). Made by `lit`, `from` and `join`. */
export interface Input<out T> {
  readonly [VALUE]: T;
}

/** Objects and lists of inputs, at any depth. */
export type JoinShape = Input<unknown> | { readonly [key: string]: JoinShape } | readonly JoinShape[];

/** The value that a join gives. */
export type Joined<S> =
  S extends Input<infer U>
    ? U
    : S extends readonly unknown[]
      ? { -readonly [K in keyof S]: Joined<S[K]> }
      : { -readonly [K in keyof S]: Joined<S[K]> };

/** The keys that `from` may read of an output: none of a list or a string. */
type KeyOf<O> = 0 extends 1 & O
  ? string
  : [O] extends [readonly unknown[]]
    ? never
    : [O] extends [object]
      ? keyof O & string
      : never;

const EXPRESSION = Symbol.for('nestjs-cyclone:input');

/** @internal What an input is at run time. */
export type Expression =
  | { readonly op: 'lit'; readonly value: unknown }
  | { readonly op: 'from'; readonly node: Node; readonly key: string | undefined }
  | { readonly op: 'join'; readonly shape: unknown };

function input(expression: Expression): Input<never> {
  return { ...expression, [EXPRESSION]: true } as unknown as Input<never>;
}

/** @internal The expression of an input; undefined for anything else. */
export function expressionOf(value: unknown): Expression | undefined {
  return typeof value === 'object' && value !== null && (value as { [EXPRESSION]?: true })[EXPRESSION] === true
    ? (value as Expression)
    : undefined;
}

/** A value that is known at submit. It is stored as JSON: a Date becomes a string (R36). */
export function lit<const T>(value: T): Input<Stored<T>> {
  return input({ op: 'lit', value });
}

/** The output of an upstream node, which makes it a dependency. */
export function from<O>(node: StepNode<O>): Input<O>;
/** One key of the output of an upstream node; null when the output lacks it (R4). */
export function from<O, K extends KeyOf<O>>(node: StepNode<O>, key: K): Input<O[K & keyof O]>;
export function from(node: Node, key?: string): Input<never> {
  return input({ op: 'from', node, key });
}

/** An object or list of inputs; it nests. A key that is missing upstream is left out of an object and null in a list (R4). */
export function join<const S extends { readonly [key: string]: JoinShape } | readonly JoinShape[]>(
  shape: S,
): Input<Joined<S>> {
  return input({ op: 'join', shape });
}
