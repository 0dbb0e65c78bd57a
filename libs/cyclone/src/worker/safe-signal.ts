type Listener = ((this: AbortSignal, event: Event) => unknown) | { handleEvent(event: Event): unknown };

/**
 * An AbortSignal whose listeners may throw: the platform would make that an uncaught exception, which ends the process (C12).
 * @param onError told what a listener threw, or what the promise that it returned rejected with
 */
export function createSafeController(onError: (error: unknown) => void): AbortController {
  const controller = new AbortController();
  const { signal } = controller;
  const wrapped = new WeakMap<object, (event: Event) => void>();

  const wrap = (listener: Listener): ((event: Event) => void) => {
    const known = wrapped.get(listener);
    if (known) return known;
    const safe = (event: Event): void => {
      try {
        const result: unknown =
          typeof listener === 'function' ? listener.call(signal, event) : listener.handleEvent(event);
        if (isThenable(result)) Promise.resolve(result).catch(onError);
      } catch (error) {
        onError(error);
      }
    };
    wrapped.set(listener, safe);
    return safe;
  };

  const { addEventListener, removeEventListener } = signal;
  let onabort: Listener | null = null;
  Object.defineProperties(signal, {
    addEventListener: {
      value: (type: 'abort', listener: Listener | null, options?: object | boolean) => {
        if (listener) addEventListener.call(signal, type, wrap(listener), options);
      },
    },
    removeEventListener: {
      value: (type: 'abort', listener: Listener | null, options?: object | boolean) => {
        if (listener) removeEventListener.call(signal, type, wrap(listener), options);
      },
    },
    onabort: {
      get: () => onabort,
      set: (listener: unknown) => {
        if (onabort) signal.removeEventListener('abort', onabort);
        onabort = typeof listener === 'function' ? (listener as Listener) : null;
        if (onabort) signal.addEventListener('abort', onabort);
      },
    },
  });
  return controller;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
