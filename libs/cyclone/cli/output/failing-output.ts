import { ExitCode } from '../command-line.js';

let changing = 0;

/**
 * Ends the command when nobody takes its output. Without its reader, as in `cyclone runs list | head`, there is nothing more to print; a
 * full disk is a failure. A change that is under way goes on after its reader has gone: it was asked for as a whole.
 */
export function watchOutput(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') {
      process.stderr.write(`cyclone: The output could not be written: ${error.message}. What was done stays done.\n`);
      process.exit(ExitCode.failed);
    }
    if (changing === 0) process.exit(ExitCode.done);
  });
  // Where messages go to nowhere, there is no place left to say so: the exit code tells.
  process.stderr.on('error', () => undefined);
}

/** Marks work that changes something, and whose end must not depend on who reads along. */
export async function unread<T>(work: () => Promise<T>): Promise<T> {
  changing++;
  try {
    return await work();
  } finally {
    changing--;
  }
}
