/** What the command's exit code says to a script. */
export const ExitCode = {
  done: 0,
  failed: 1,
  usage: 2,
  /** The database cannot be reached, or refuses. */
  database: 3,
  notFound: 4,
  /** The state of the run forbids it. */
  conflict: 5,
  /** `doctor` and `migrate status` found something to do. */
  checkFailed: 6,
  interrupted: 130,
} as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** A command line that makes no sense. */
export class UsageError extends Error {}

/** How errors call the schema's name. */
export const SCHEMA_OPTION = '--schema (or CYCLONE_SCHEMA)';

export const FORMATS = ['table', 'json', 'ids'] as const;
export type Format = (typeof FORMATS)[number];

/** The options that every command has. */
export interface Globals {
  readonly databaseUrl?: string;
  readonly schema: string;
  readonly format: Format;
  readonly actor?: string;
}
