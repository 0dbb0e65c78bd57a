/** What the command's exit code says to a script. */
export const ExitCode = { done: 0, failed: 1, usage: 2, unreachable: 3 } as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** A command line that makes no sense. The usage is shown after the message. */
export class UsageError extends Error {}

/** A parsed command line, as a command receives it. */
export interface CommandLine {
  readonly values: {
    readonly 'database-url'?: string | undefined;
    readonly schema?: string | undefined;
    readonly status?: boolean | undefined;
    readonly sql?: boolean | undefined;
  };
  /** Writes a message to stderr; stdout is for results. */
  say(message: string): void;
}
