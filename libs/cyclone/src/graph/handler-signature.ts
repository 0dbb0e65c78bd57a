// oxlint-disable typescript/no-explicit-any -- a handler may take anything, and only any matches every parameter
import type { Observable } from 'rxjs';
import type { StepContext } from './step-context.js';
import type { Storable, Stored } from './stored.js';

/** A method that may be a handler. */
export type Handler = (input: any, ctx: StepContext) => unknown;

type IsAny<T> = 0 extends 1 & T ? true : false;
/** Whether a handler gives no output. `any` is an output. */
export type IsVoid<T> = IsAny<T> extends true ? false : [T] extends [void] ? true : false;

/** What a handler that returns an R gives: what a promise resolves to, and the last value of an Observable. */
export type Output<R> = Awaited<R> extends Observable<infer V> ? V : Awaited<R>;
type OutputOf<M> = M extends (...args: any[]) => infer R ? Output<R> : never;
type InputOf<M> = M extends (input: infer I, ...rest: any[]) => unknown ? I : never;
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
type SurvivesJson<I> = [I] extends [Stored<I>] ? ([Stored<I>] extends [I] ? true : false) : false;

/** Of both: one signature, and an input that JSON can give. */
export type MustBePlain<M extends Handler> =
  IsPlain<M> extends true
    ? undefined extends UnlessNullable<InputOf<M>>
      ? { '✖ an input is never undefined: JSON has null, so write null in its place': never }
      : unknown
    : { '✖ a handler has one signature: no overloads and no type parameters of its own': never };

/** Overloads and type parameters are lost where a signature is put together again of what can be inferred of it. */
type IsPlain<M extends Handler> = M extends (...args: infer A) => infer R
  ? ((...args: A) => R) extends M
    ? true
    : false
  : never;

type UnlessNullable<I> = null extends I ? never : I;

/**
 * Of both: nothing can be checked of a type that only a subclass names. True of every type that is known; with a type parameter the
 * compiler leaves the inner condition open, and its error reads it. The outer one is there so that it does.
 */
export type MustBeKnown<M extends Handler> = M extends Handler
  ? [InputOf<M>, OutputOf<M>] extends [Itself<InputOf<M>>, Itself<OutputOf<M>>]
    ? unknown
    : {
        '✖ not with a type parameter of the class: decorate a method of the subclass, where the types are known': never;
      }
  : never;

/** Distributes over T, so that nothing follows from it as long as T is open. */
type Itself<T> = T extends null ? T : T;

/** What a generator function returns, and an iterator. */
type Lazy = AsyncIterable<unknown> | { next(...args: never[]): IteratorResult<unknown, unknown> };
interface MustNotBeLazy {
  '✖ a handler must not be a generator, nor return an iterator; return an array': never;
}

/** Of `@Step()`: an output, and one that can be stored. */
export type MustReturnOutput<M> =
  IsVoid<OutputOf<M>> extends true
    ? { '✖ @Step() must return a value; use @Action() for a handler with no output': never }
    : IsAny<OutputOf<M>> extends true
      ? unknown
      : [OutputOf<M>] extends [Lazy]
        ? MustNotBeLazy
        : [OutputOf<M>] extends [Storable<OutputOf<M>>]
          ? unknown
          : { '✖ the output holds what JSON loses (an Error, a Map, binary data, …); return plain data': never };

/** Of `@Action()`: no output. */
export type MustReturnNothing<M> =
  IsVoid<OutputOf<M>> extends true
    ? unknown
    : [OutputOf<M>] extends [Lazy]
      ? MustNotBeLazy
      : { '✖ @Action() must return void; use @Step() to store an output': never };

/** Of both: a parameter that is what the database gives back, or the class that revives it (R37). `In` is never without one. */
export type MustAcceptStored<M, In> = [In] extends [never]
  ? SurvivesJson<InputOf<M>> extends true
    ? unknown
    : { '✖ the input does not survive JSON; name its DTO class in { input: … } to revive it': never }
  : Same<In, InputOf<M>> extends true
    ? unknown
    : { '✖ options.input is not the class of the first parameter': never };
