import { InvalidOptionError } from './errors/setup-errors.js';
import { isStorable } from './storable-text.js';

/** Longest note beside a progress, in bytes of UTF-8. */
export const MAX_NOTE_BYTES = 1_024;

/** So fine is what is stored: the column holds no more digits, and refuses numbers that are too small for it. */
const STEPS = 1_000_000;

/** How far a handler says that it has come. */
export interface Progress {
  /** 0 to 1. */
  readonly fraction: number;
  /** null: the note that is stored stays. */
  readonly note: string | null;
}

/**
 * Checks what a handler reports, so that nothing of it can fail the renewal that carries it.
 * @throws InvalidOptionError for a fraction that is no number from 0 to 1, and for a note that cannot be stored
 */
export function checkProgress(fraction: number, note: string | undefined): Progress {
  if (typeof fraction !== 'number' || !(fraction >= 0 && fraction <= 1)) {
    throw new InvalidOptionError(
      'fraction of ctx.progress()',
      `must be a number from 0 to 1; it is ${typeof fraction === 'number' ? fraction : `a ${typeof fraction}`}. Divide what is done by the whole.`,
    );
  }
  if (
    note !== undefined &&
    (typeof note !== 'string' || !isStorable(note) || Buffer.byteLength(note) > MAX_NOTE_BYTES)
  ) {
    throw new InvalidOptionError(
      'note of ctx.progress()',
      `must be a text of at most ${MAX_NOTE_BYTES} bytes, without U+0000 and halves of surrogate pairs. Shorten it, or log it with ctx.logger.`,
    );
  }
  return { fraction: Math.round(fraction * STEPS) / STEPS + 0, note: note ?? null };
}

/** What remains of two reports of one execution: the newer one, with the older one's note when it has none. */
export function mergeProgress<P extends Progress>(older: Progress | undefined, newer: P): P {
  return older && newer.note === null ? { ...newer, note: older.note } : newer;
}
