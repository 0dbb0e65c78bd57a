import type { StepContext } from '../graph/step-context.js';
import { InvalidPayloadError } from '../model/errors/graph-errors.js';
import { isObservable, unfinished, type ObservableLike } from '../model/lossy-value.js';
import { encodePayload } from '../model/payload.js';
import type { Execution } from './execution.js';

/**
 * What has to be waited for when a handler has returned: a promise, whatever else has a `then`, or the last value of an Observable, as Nest
 * does for controllers; undefined when there is nothing.
 */
export function pendingOf(result: unknown, context: Pick<StepContext, 'signal'>): Promise<unknown> | undefined {
  if ((typeof result !== 'object' || result === null) && typeof result !== 'function') return undefined;
  return Promise.resolve(result).then((value) => (isObservable(value) ? lastValue(value, context.signal) : value));
}

/** The last value of an Observable, undefined when it has none. It is unsubscribed when the signal aborts. */
function lastValue(observable: ObservableLike, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    let last: unknown;
    const subscription = observable.subscribe({
      next: (value) => (last = value),
      error: reject,
      complete: () => resolve(last),
    });
    signal.addEventListener(
      'abort',
      () => {
        subscription.unsubscribe();
        reject(signal.reason as Error);
      },
      { once: true },
    );
  });
}

/**
 * JSON text of what a handler gave; null for an action.
 * @throws InvalidPayloadError, PayloadTooLargeError for what cannot be stored (R36), and for work that would never be done
 */
export function outputOf(value: unknown, { handler, node }: Execution, maxBytes: number): string | null {
  if (handler.nodeType === 'step') return encodePayload(value, { maxBytes, path: 'output', node });
  const problem = typeof value === 'object' && value !== null ? unfinished(value) : undefined;
  if (problem !== undefined) throw new InvalidPayloadError('output', problem, node);
  return null;
}
