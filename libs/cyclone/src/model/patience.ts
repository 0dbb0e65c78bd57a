import { startTimer, type Timer } from './timer.js';

/** How long something is waited for without a word (R42). */
export const PATIENCE_MS = 5_000;

/**
 * Calls `warn` once when something is waited for longer than that; cancel it when the waiting ends. It keeps the process alive so long: one
 * with nothing else to do would end before it, in silence.
 */
export function warnLater(warn: () => void): Timer {
  return startTimer(PATIENCE_MS, warn);
}
