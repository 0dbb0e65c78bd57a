#!/usr/bin/env node
import { parseArgs } from 'node:util';
import { InvalidOptionError } from '#cyclone/model/errors/index.js';
import { UnreachableError } from './database.js';
import { ExitCode, UsageError, type CommandLine } from './command-line.js';
import { migrateCommand } from './migrate-command.js';

const USAGE = `Usage: cyclone <command> [options]

Commands:
  migrate             create the schema or bring it to the version of this package
  migrate --status    compare the schema with this package and change nothing; exit code 1 when migrate has something to do
  migrate --sql       print the whole schema as a script for psql, for an administrator to run; needs no database

Options:
  --database-url URL  postgres://user:password@host:port/database (default: the environment variable DATABASE_URL)
  --schema NAME       the Postgres schema of the cyclone_* objects (default: public)
  --help

Results go to stdout, messages to stderr.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the database cannot be reached.
`;

const COMMANDS: Readonly<Record<string, (line: CommandLine) => Promise<ExitCode>>> = { migrate: migrateCommand };

async function main(args: readonly string[]): Promise<ExitCode> {
  const { positionals, values } = parse(args);
  if (values.help) {
    process.stdout.write(USAGE);
    return ExitCode.done;
  }
  const [name, ...rest] = positionals;
  if (name === undefined) throw new UsageError('A command is missing.');
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command) throw new UsageError(`There is no command "${name}".`);
  if (rest.length > 0) throw new UsageError(`The command ${name} takes no argument, but "${rest[0]}" was given.`);
  return command({ values, say: (message) => process.stderr.write(`${message}\n`) });
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        'database-url': { type: 'string' },
        schema: { type: 'string' },
        status: { type: 'boolean' },
        sql: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** Only messages are shown, never an error as a whole: its properties may hold the connection string. */
function report(error: unknown): ExitCode {
  process.stderr.write(`cyclone: ${error instanceof Error ? error.message : String(error)}\n`);
  if (error instanceof UsageError) {
    process.stderr.write(`\n${USAGE}`);
    return ExitCode.usage;
  }
  if (InvalidOptionError.is(error) && error.option.startsWith('--')) return ExitCode.usage;
  return error instanceof UnreachableError ? ExitCode.unreachable : ExitCode.failed;
}

process.exitCode = await main(process.argv.slice(2)).catch(report);
