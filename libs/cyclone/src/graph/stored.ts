type Primitive = string | number | boolean | null;

/**
 * What JSON cannot hold, or would make `{}` of. By their members: the names of some of these types exist in browsers' or Node's libraries
 * only. An array is an iterable too, so it has to be told apart before.
 */
type Unstorable =
  | bigint
  | symbol
  | Method
  | PromiseLike<unknown>
  | Iterable<unknown> // Map, Set, Headers, FormData, URLSearchParams, generators
  | AsyncIterable<unknown>
  | { next(...args: never[]): IteratorResult<unknown, unknown> }
  | RegExp
  | ArrayBufferLike
  | ArrayBufferView
  | WeakMap<WeakKey, unknown>
  | WeakSet<WeakKey>
  | { deref(): unknown } // WeakRef
  | { arrayBuffer(): PromiseLike<unknown> } // Blob, File, Request, Response
  | { getReader(...args: never[]): unknown } // ReadableStream
  | { pipe(...args: never[]): unknown; on(...args: never[]): unknown } // streams of Node
  | { pipe(...args: never[]): unknown; subscribe(...args: never[]): unknown } // Observable
  | { resolvedOptions(): unknown }; // Intl

/** An error is told by its `stack`: whoever has a name and a message only may be data. */
type IsLost<T> = T extends Unstorable ? true : T extends Error ? ('stack' extends keyof T ? true : false) : false;

/** What a type becomes whose values cannot be stored: nothing is assignable to it by accident, and the name says why. */
export interface NotStorable<T> {
  readonly '✖ cannot be stored as JSON': T;
}

/** What a value of type T looks like to its consumers, after JSON and JSONB: a `Date` is a `string`, methods are gone (R36). */
export type Stored<T> = unknown extends T ? T : [T] extends [Unchanged<T>] ? T : Wire<T>; // unchanged: keep its name

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
      : T extends readonly unknown[]
        ? { -readonly [K in keyof T]: WireElement<T[K]> }
        : IsLost<T> extends true
          ? NotStorable<T>
          : T extends object
            ? { [K in keyof T as K extends string ? (T[K] extends Method ? never : K) : never]: Wire<T[K]> }
            : T; // undefined, of an optional property

/** T itself where JSON gives the same type back, and otherwise a type that T does not fit. */
type Unchanged<T> = unknown extends T
  ? T
  : T extends Primitive | undefined
    ? T
    : T extends unknown[]
      ? UnchangedList<T[number]>
      : T extends { toJSON(): unknown } | readonly unknown[]
        ? never
        : IsLost<T> extends true
          ? never
          : T extends object
            ? { [K in keyof T]: K extends string ? Unchanged<T[K]> : never }
            : never;

/** T itself where all of it can be stored, and otherwise a type that T does not fit, however deep the place is. */
export type Storable<T> = unknown extends T
  ? T
  : T extends Primitive | undefined | void | { toJSON(): unknown }
    ? T
    : T extends readonly unknown[]
      ? StorableList<T[number]>
      : IsLost<T> extends true
        ? never
        : T extends object
          ? { [K in keyof T]: T[K] extends Method ? T[K] : Storable<T[K]> }
          : T;

// Interfaces, because these are looked into only when they are compared: a type of lists of itself would have no end.
interface StorableList<E> extends ReadonlyArray<Storable<E>> {}
interface UnchangedList<E> extends Array<E extends undefined ? never : Unchanged<E>> {}

type Method = (...args: never[]) => unknown;

/** JSON has no undefined in lists. */
type WireElement<T> = T extends undefined ? null : Wire<T>;
