import { startTimer } from '../model/timer.js';

/** Where the worker's housekeeping gets its timers, so that a framework can show them. */
export interface Timers {
  /** Calls `call` about every `everyMs` milliseconds until it is stopped. `call` never throws. */
  every(name: string, everyMs: number, call: () => void): { stop(): void };
}

/** How much longer than asked a period may be, so that many processes do not tick together; never shorter: an idle worker asks once a second. */
const JITTER = 0.2;

/** Timers of the platform, each period jittered. They keep no process alive. */
export const platformTimers: Timers = {
  every(_name, everyMs, call) {
    const arm = (): { cancel(): void } =>
      startTimer(
        everyMs * (1 + JITTER * Math.random()),
        () => {
          timer = arm();
          call();
        },
        { unref: true },
      );
    let timer = arm();
    return { stop: () => timer.cancel() };
  },
};
