type Primitive = string | number | boolean | null;
type Unstorable =
  | bigint
  | symbol
  | ((...args: never[]) => unknown)
  | ReadonlyMap<unknown, unknown>
  | ReadonlySet<unknown>
  | WeakMap<WeakKey, unknown>
  | WeakSet<WeakKey>
  | PromiseLike<unknown>;

/** What a type becomes whose values cannot be stored: nothing is assignable to it by accident, and the name says why. */
export interface NotStorable<T> {
  readonly '✖ cannot be stored as JSON': T;
}

/** What a value of type T looks like to its consumers, after JSON and JSONB: a `Date` is a `string`, methods are gone (R36). */
export type Stored<T> = unknown extends T
  ? T
  : [T] extends [Wire<T>]
    ? [Wire<T>] extends [T]
      ? T // the same type: keep its name
      : Wire<T>
    : Wire<T>;

/** The same for what a handler returns: nothing at all is stored as null. */
export type StoredOutput<O> = unknown extends O
  ? O
  : [Extract<O, undefined | void>] extends [never]
    ? Stored<O>
    : Stored<Exclude<O, undefined | void>> | null;

/** T written as JSON, member by member. */
export type Wire<T> = unknown extends T
  ? T
  : T extends Primitive
    ? T
    : T extends { toJSON(): infer J }
      ? Wire<J>
      : T extends Unstorable
        ? NotStorable<T>
        : T extends readonly unknown[]
          ? { -readonly [K in keyof T]: WireElement<T[K]> }
          : T extends object
            ? { [K in keyof T as K extends string ? (T[K] extends Method ? never : K) : never]: Wire<T[K]> }
            : T; // undefined, of an optional property

type Method = (...args: never[]) => unknown;

/** JSON has no undefined in lists. */
type WireElement<T> = T extends undefined ? null : Wire<T>;
