import 'reflect-metadata';
import { methodKeys } from '../graph/metadata.js';

/** A constant key: the decorator of one copy of the package is seen by another. */
const LISTENER_KEY = 'cyclone:on-step-event';

/** What `@OnStepEvent()` says about a method. */
export interface ListenerMetadata {
  /** The types of events that it wants. */
  readonly types: readonly string[];
  readonly cyclone: string | undefined;
}

/** Keeps metadata by (prototype, key): a decorator that replaces the function does not lose it (C18). */
export function setListenerMetadata(prototype: object, key: string | symbol, metadata: ListenerMetadata): void {
  Reflect.defineMetadata(LISTENER_KEY, metadata, prototype, key);
}

/** Every listening method that a class has or inherits; one that overrides a listening method goes on listening. Fires no getter. */
export function listListeners(prototype: object): Map<string | symbol, ListenerMetadata> {
  const found = new Map<string | symbol, ListenerMetadata>();
  for (const key of methodKeys(prototype)) {
    const metadata = Reflect.getMetadata(LISTENER_KEY, prototype, key) as ListenerMetadata | undefined;
    if (metadata) found.set(key, metadata);
  }
  return found;
}
