import { pathToFileURL } from 'node:url';
// By this name, without `node:`, webpack knows that the file below is a thread, and bundles it with all that it imports.
import { Worker as Thread, type WorkerOptions } from 'worker_threads';

// oxlint-disable-next-line no-underscore-dangle -- Node's name
declare const __filename: string;

/** Starts `lease-thread.js`, which lies beside this module, or beside the bundle that contains it (docs/bundling.md). */
export function startThreadFile(options: WorkerOptions): Thread {
  // esbuild gives a bundle of CommonJS an empty import.meta.
  if (!import.meta.url) return new Thread(new URL('./lease-thread.js', pathToFileURL(__filename)), options);
  return new Thread(new URL('./lease-thread.js', import.meta.url), options);
}
