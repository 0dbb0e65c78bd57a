import type { Node, StepNode } from './handle.js';
import type { MustBeInputs } from './input-signature.js';
import type { Stored } from './stored.js';

/** Where a node's input comes from: a literal, an upstream output, or both mixed (R4). Made by `lit`, `from` and `join`. */
export interface Input<out T> {
  readonly '✖ an input; made by lit(), from() or join()': T;
}

/** Objects and lists of inputs, at any depth. */
export type JoinShape = Input<unknown> | { readonly [key: string]: JoinShape } | readonly JoinShape[];

/** The value that a join gives: a key that is missing upstream is left out of an object and null in a list (R4). */
export type Joined<S> =
  S extends Input<infer U>
    ? U
    : S extends readonly unknown[]
      ? { -readonly [K in keyof S]: OrNull<Joined<S[K]>> }
      : { -readonly [K in keyof S]: Joined<S[K]> };

type OrNull<T> = undefined extends T ? Exclude<T, undefined> | null : T;

type IsAny<T> = 0 extends 1 & T ? true : false;
type Keys<O> = O extends readonly unknown[] ? never : O extends object ? keyof O & string : never;

/** The keys that `from` may read: those of each member of a union, and none of a list or a text. */
export type KeyOf<O> =
  IsAny<O> extends true
    ? string
    : [Keys<O>] extends [never]
      ? '✖ no keys are known of this value: read it whole, without a key'
      : Keys<O>;

/** What `from` reads there; undefined where the key may be missing, as below a value that may be null. */
export type At<O, K> =
  IsAny<O> extends true ? O : O extends object ? (K extends keyof O ? O[K] : undefined) : undefined;

const EXPRESSION = Symbol.for('nestjs-cyclone:input');

/** @internal What an input is at run time. */
export type Expression =
  | { readonly op: 'lit'; readonly value: unknown }
  | { readonly op: 'from'; readonly node: Node; readonly keys: readonly unknown[] }
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
export function from<O, K extends KeyOf<O>>(node: StepNode<O>, key: K): Input<At<O, K>>;
/** A key below a key of the output, at any depth; null when one of them is missing. */
export function from<O, K extends KeyOf<O>, L extends KeyOf<At<O, K>>>(
  node: StepNode<O>,
  key: K,
  below: L,
): Input<At<At<O, K>, L>>;
export function from<O, K extends KeyOf<O>, L extends KeyOf<At<O, K>>, M extends KeyOf<At<At<O, K>, L>>>(
  node: StepNode<O>,
  key: K,
  below: L,
  next: M,
): Input<At<At<At<O, K>, L>, M>>;
export function from(node: Node, ...keys: readonly unknown[]): Input<never> {
  return input({ op: 'from', node, keys });
}

/** An object or list of inputs; it nests. A key that is missing upstream is left out of an object and null in a list (R4). */
export function join<const S>(shape: MustBeInputs<S>): Input<Joined<S>> {
  return input({ op: 'join', shape });
}
