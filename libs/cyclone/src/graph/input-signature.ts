// What the compiler says where an input is wanted and something else is given.
import type { Node, StepNode } from './handle.js';
import type { Input, JoinShape } from './inputs.js';

/**
 * The type of a parameter that wants an input of type I, for an argument of type X. A key that is missing upstream arrives as null, so
 * what takes null takes it too.
 */
export type InputFor<I, X> =
  X extends Input<unknown>
    ? X & Input<NoInfer<OrLeftOut<I>>>
    : X extends undefined
      ? NoInput<I>
      : X & { [K in WhyNoInput<X>]: never };

/** I, and undefined where I allows null. */
export type OrLeftOut<I> = null extends I ? I | undefined : I;

/** Of a handle that is given without an input. */
export type MustTakeNoInput<I> = null extends I
  ? unknown
  : { '✖ this handler takes an input: pass lit(value), from(node) or join({ … })': never };

/** Of a handle that is enqueued without an input. */
export type MustEnqueueNoInput<I> = null extends I ? unknown : { '✖ this handler takes an input: pass it': never };

/** Of a workflow that is submitted without an input. */
export type MustSubmitNoInput<I> = undefined extends I ? unknown : { '✖ this workflow takes an input: pass it': never };

type NoInput<I> = null extends I ? undefined : MustTakeNoInput<I>;

/** The objects of a join: each value an input, or such an object or list again. */
export type MustBeInputs<S> = S extends JoinShape ? S : { readonly [K in keyof S]: MustBeInput<S[K]> };

type MustBeInput<V> = V extends JoinShape
  ? V
  : IsNode<V> extends true
    ? WhyNoInput<V>
    : V extends Plain
      ? Nested<V>
      : WhyNoInput<V>;
type Nested<V> = { readonly [K in keyof V]: MustBeInput<V[K]> };
type Plain = readonly unknown[] | { readonly [key: string]: unknown };

type WhyNoInput<X> =
  X extends StepNode<unknown>
    ? '✖ a node is no input: read its output with from(node)'
    : IsNode<X> extends true
      ? '✖ an action has no output to read: name it in the option after'
      : X extends JoinShape
        ? '✖ inputs in an object or a list: wrap it in join()'
        : '✖ a bare value is no input: wrap it in lit(value)';

/** Nothing but the name tells an action from a value. */
type IsNode<X> = X extends Node
  ? X extends StepNode<unknown>
    ? true
    : [keyof X] extends ['node']
      ? true
      : false
  : false;
