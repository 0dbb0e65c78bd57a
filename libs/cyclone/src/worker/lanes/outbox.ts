import type { Execution } from '../execution.js';

/** The most that one call carries (C13). */
const MAX_ITEMS = 500;
const MAX_BYTES = 4 * 1024 * 1024;
/** A text shorter than this is taken for its length: what counts is the order of magnitude. */
const COUNT_FROM = 1_024;

/** Executions that wait for the next call, first in, first out, taken in batches bounded by count and bytes. */
export class Outbox {
  private waiting: Execution[] = [];

  get size(): number {
    return this.waiting.length;
  }

  push(execution: Execution): void {
    this.waiting.push(execution);
  }

  /** Takes the next batch; at least one when there is any. */
  take(): Execution[] {
    const all = this.waiting;
    let bytes = 0;
    let count = 0;
    while (count < all.length && count < MAX_ITEMS) {
      bytes += sizeOf(all[count] as Execution);
      if (bytes > MAX_BYTES && count > 0) break;
      count++;
    }
    if (count === all.length) {
      this.waiting = [];
      return all;
    }
    return all.splice(0, count);
  }
}

function sizeOf({ output }: Execution): number {
  if (output === null) return 0;
  return output.length < COUNT_FROM ? output.length : Buffer.byteLength(output);
}
