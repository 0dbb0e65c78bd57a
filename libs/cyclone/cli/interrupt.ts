import { ExitCode } from './command-line.js';
import { unread } from './output/failing-output.js';
import type { Shell } from './shell.js';

/**
 * Runs changes that consist of many transactions. The first interrupt lets it stop between two of them, so that it can say what it has done;
 * a second one ends the process.
 */
export async function interruptible(shell: Shell, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const controller = new AbortController();
  const interrupt = (): void => controller.abort();
  process.once('SIGINT', interrupt);
  try {
    await unread(() => work(controller.signal));
  } finally {
    process.removeListener('SIGINT', interrupt);
  }
  if (!controller.signal.aborted) return;
  shell.say('Interrupted. What was done stays done.');
  shell.fail(ExitCode.interrupted);
}
