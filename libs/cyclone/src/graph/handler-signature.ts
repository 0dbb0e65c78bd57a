// oxlint-disable typescript/no-explicit-any -- a handler may take anything, and only any matches every parameter
import type { StepContext } from './step-context.js';
import type { NotStorable, Stored } from './stored.js';

/** A method that may be a handler. */
export type Handler = (input: any, ctx: StepContext) => unknown;

type IsAny<T> = 0 extends 1 & T ? true : false;
/** Whether a handler gives no output. `any` is an output. */
export type IsVoid<T> = IsAny<T> extends true ? false : [T] extends [void] ? true : false;

type OutputOf<M> = M extends (...args: any[]) => infer R ? Awaited<R> : never;
type InputOf<M> = M extends (input: infer I, ...rest: any[]) => unknown ? I : never;
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;

/** Of `@Step()`: an output, and one that can be stored. */
export type MustReturnOutput<M> =
  IsVoid<OutputOf<M>> extends true
    ? { '✖ @Step() must return a value; use @Action() for a handler with no output': never }
    : IsAny<OutputOf<M>> extends true
      ? unknown
      : [Stored<OutputOf<M>>] extends [NotStorable<unknown>]
        ? { '✖ the output cannot be stored as JSON': never }
        : unknown;

/** Of `@Action()`: no output. */
export type MustReturnNothing<M> =
  IsVoid<OutputOf<M>> extends true
    ? unknown
    : { '✖ @Action() must return void; use @Step() to store an output': never };

/** Of both: a parameter that is what the database gives back, or the class that revives it (R37). `In` is never without one. */
export type MustAcceptStored<M, In> = [In] extends [never]
  ? Same<InputOf<M>, Stored<InputOf<M>>> extends true
    ? unknown
    : { '✖ the input does not survive JSON; name its DTO class in { input: … } to revive it': never }
  : Same<In, InputOf<M>> extends true
    ? unknown
    : { '✖ options.input is not the class of the first parameter': never };
