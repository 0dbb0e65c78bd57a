import { InvalidArgumentError, Option, type Command } from 'commander';
import { parsePositiveDuration, type Duration } from '#cyclone/model/duration.js';

/** A whole number; the library says which ones make sense. */
export function whole(text: string): number {
  if (!/^-?\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

/** A length of time such as 30s, 24h or 7d; the library checks it. */
export function duration(text: string): Duration {
  return text as Duration;
}

/** Adds a value to those of the same option: `--state failed --state cancelled`, or `--state failed,cancelled`. */
export function several(text: string, before: readonly string[] = []): string[] {
  return [...before, ...text.split(',').filter((part) => part !== '')];
}

/** `key=value` into an object. */
export function tag(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('It must look like key=value.');
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

/** The point in time that lies `ago` before now, on the clock of this machine. */
export function since(ago: Duration | undefined): { createdFrom?: Date } {
  return ago === undefined ? {} : { createdFrom: new Date(Date.now() - parsePositiveDuration(ago, '--since')) };
}

/** Options that several commands have. */
export const dryRun = (): Option => new Option('--dry-run', 'only show what would be done');

/** Adds the options of commands that change many runs: they only look unless --yes is said. */
export function addBulk(command: Command, all: string): Command {
  return command
    .addOption(new Option('--yes', 'do it; without this it only says what it would do').conflicts('dryRun'))
    .option('--dry-run', 'only say what it would do, as without --yes')
    .option('--all', all);
}

export interface BulkFlags {
  readonly yes?: boolean;
  readonly all?: boolean;
}

/** What a command says at the end of a dry run. @param everything whether no filter was given, so that the change wants `--all` too */
export const nothingChanged = (everything: boolean): string =>
  `Nothing was changed: say --yes${everything ? ' --all' : ''} to do it.`;
export const reason = (): Option => new Option('--reason <text>', 'why; kept with the change and in the audit');
export const attempts = (): Option =>
  new Option('--attempts <n>', 'attempts to grant on top of those that are left').argParser(whole);
