/** The longest delay that the platform's timer keeps; a longer one fires at once. */
const LONGEST_MS = 2 ** 31 - 1;

/** A timer that has been started. */
export interface Timer {
  /** Stops it; harmless when it has fired already. */
  cancel(): void;
}

export interface TimerOptions {
  /** Whether the process may end while it runs. @default false */
  readonly unref?: boolean;
}

/**
 * Calls `callback` once, after `delayMs` milliseconds of any length. The only place with a platform timer: timers of more than
 * 24.8 days would fire at once (C12). `callback` must not throw.
 */
export function startTimer(delayMs: number, callback: () => void, options: TimerOptions = {}): Timer {
  const due = performance.now() + Math.max(0, delayMs);
  let handle: NodeJS.Timeout;
  const arm = (remaining: number): void => {
    handle = setTimeout(
      () => (remaining > LONGEST_MS ? arm(due - performance.now()) : callback()),
      Math.min(remaining, LONGEST_MS),
    );
    if (options.unref) handle.unref();
  };
  arm(Math.max(0, delayMs));
  return { cancel: () => clearTimeout(handle) };
}

/** Resolves after `delayMs` milliseconds, or earlier when `signal` aborts; it never rejects. */
export function sleep(delayMs: number, options: TimerOptions & { readonly signal?: AbortSignal } = {}): Promise<void> {
  const { signal } = options;
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      timer.cancel();
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = startTimer(delayMs, end, options);
    signal?.addEventListener('abort', end, { once: true });
  });
}
