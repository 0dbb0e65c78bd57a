import { InvalidOptionError, UnknownHandlerError } from '../model/errors/setup-errors.js';
import type { Type } from '../model/options.js';
import { createHandle, type ActionHandle, type StepHandle } from './handle.js';
import type { Handler, IsVoid, Output } from './handler-signature.js';
import { className, getHandlerMetadata, methodKeys } from './metadata.js';
import type { StepContext } from './step-context.js';
import type { Stored } from './stored.js';

type HandleFor<M> = M extends (input: infer I, ctx: StepContext) => infer R
  ? IsVoid<Output<R>> extends true
    ? ActionHandle<Stored<I>>
    : StepHandle<Stored<I>, Output<R>>
  : never;

/** The handles of a class: one for each public method that has the signature of a handler. */
export type StepsOf<T> = { readonly [K in keyof T as T[K] extends Handler ? K : never]: HandleFor<T[K]> };

/** One object for each class: `define` asks for it on every submit. It is made of the class alone, so nothing leaks between applications. */
const known = new WeakMap<object, object>();

/** Looked at by promises, JSON and consoles, which must not stumble over a handler class that has a method of the name. */
const UNTOUCHABLE: ReadonlySet<string | symbol> = new Set([
  'then',
  'toJSON',
  ...Object.getOwnPropertyNames(Object.prototype),
]);

/**
 * Typed handles of the decorated methods of a class, inherited ones included. Read from the class only: no instance is made and no
 * getter fires (C18).
 * @throws UnknownHandlerError on access to a method that is not decorated
 */
export function stepsOf<T>(handlers: Type<T>): StepsOf<T> {
  if (typeof handlers !== 'function') {
    throw new InvalidOptionError(
      'class of stepsOf()',
      'must be a class; an import cycle leaves it undefined until later.',
    );
  }
  let handles = known.get(handlers);
  if (!handles) known.set(handlers, (handles = createHandles((handlers as { prototype: object }).prototype)));
  return handles as StepsOf<T>;
}

function createHandles(prototype: object): object {
  const handles = {};
  for (const key of methodKeys(prototype)) {
    const lookup = getHandlerMetadata(prototype, key);
    if (lookup && lookup.overriddenBy === undefined) {
      Object.defineProperty(handles, key, { value: createHandle(lookup.metadata), enumerable: true });
    } else if (typeof key === 'string' && !UNTOUCHABLE.has(key)) {
      const name = `${lookup?.overriddenBy ?? className(prototype)}.${key}`;
      Object.defineProperty(handles, key, { get: () => refuse(name, lookup?.metadata.owner) });
    }
  }
  return Object.freeze(handles);
}

function refuse(name: string, overridden: string | undefined): never {
  throw new UnknownHandlerError(
    name,
    overridden === undefined
      ? 'Decorate the method with @Step() or @Action().'
      : `It overrides ${overridden} and must be decorated again with @Step() or @Action().`,
  );
}
