import type { Command } from 'commander';
import type { OperatorClient } from '#cyclone/client/operator-client.js';
import { ExitCode, type Globals } from './command-line.js';
import { withOperator } from './operator.js';
import { visible } from './output/visible.js';

/** The process around a command: results go to stdout, everything else to stderr. */
export class Shell {
  exitCode: ExitCode = ExitCode.done;

  /** Writes a message to stderr. Control characters in it are shown, never sent to the terminal. */
  say(message: string): void {
    process.stderr.write(`${message.split('\n').map(visible).join('\n')}\n`);
  }

  warn(message: string): void {
    this.say(`WARN ${message}`);
  }

  /** Remembers the first failure of several; the command goes on with the rest. */
  fail(code: ExitCode): void {
    if (this.exitCode === ExitCode.done) this.exitCode = code;
  }
}

/** What a command has to work with. */
export interface Context<Options> {
  readonly operator: OperatorClient;
  readonly options: Globals & Options;
  readonly shell: Shell;
}

/** The action of a command that looks at runs or changes them: opens the database for it. */
export function operate<Options, Args extends unknown[] = []>(
  shell: Shell,
  work: (context: Context<Options>, ...args: Args) => Promise<void>,
): (...all: unknown[]) => Promise<void> {
  return async (...all) => {
    // Commander passes the arguments, the options and the command.
    const options = (all.at(-1) as Command).optsWithGlobals<Globals & Options>();
    await withOperator(options, shell, (operator) => work({ operator, options, shell }, ...(all.slice(0, -2) as Args)));
  };
}
