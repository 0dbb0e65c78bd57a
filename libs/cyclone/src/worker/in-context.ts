import { AsyncLocalStorage } from 'node:async_hooks';

/** Runs a call in a captured async context. */
export type InContext = <A extends unknown[], R>(call: (...args: A) => R, ...args: A) => R;

/**
 * Captures the present async context. A worker does it at its start and runs loops and handlers in it: else a handler that a
 * submit's flush starts would see the submitter's request (C11).
 */
export function captureContext(): InContext {
  return AsyncLocalStorage.snapshot() as InContext;
}
