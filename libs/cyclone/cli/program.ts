import { Command, CommanderError, Option } from 'commander';
import { PACKAGE_VERSION } from '#cyclone/model/package-version.js';
import { ExitCode, FORMATS } from './command-line.js';
import { Shell } from './shell.js';
import { addChanges } from './commands/change.js';
import { addDeadLetters } from './commands/dlq.js';
import { addMaintenance } from './commands/maintain.js';
import { addMigrate } from './commands/migrate.js';
import { addObservation } from './commands/observe.js';
import { addRuns } from './commands/runs.js';
import { addSteps } from './commands/steps.js';
import { exitCodeOf, messageOf } from './report.js';

const EPILOGUE = `
Data goes to stdout, everything else to stderr. Ids can be piped: cyclone runs list --state failed --format ids | cyclone retry - --all
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the database cannot be reached or refuses, 4 not found, 5 the state of the run forbids it,
6 a check found something, 130 interrupted.`;

/** Runs a command line and gives the exit code. */
export async function run(args: readonly string[]): Promise<ExitCode> {
  const shell = new Shell();
  try {
    await programOf(shell).parseAsync([...args], { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.done : ExitCode.usage; // it has said why
    shell.say(`cyclone: ${messageOf(error)}`);
    return exitCodeOf(error);
  }
  return shell.exitCode;
}

function programOf(shell: Shell): Command {
  const program = new Command('cyclone')
    .description('Operates the durable runs of an application: looks at them, stops them, mends them.')
    .version(PACKAGE_VERSION)
    .option(
      '--database-url <url>',
      'postgres://user:password@host:port/database (default: the environment variable DATABASE_URL)',
    )
    .addOption(
      new Option('--schema <name>', 'the Postgres schema of the cyclone_* objects').default(
        process.env.CYCLONE_SCHEMA || 'public',
        'the environment variable CYCLONE_SCHEMA, or public',
      ),
    )
    .addOption(new Option('--format <format>', 'how to print data').choices([...FORMATS]).default('table'))
    .option('--actor <name>', 'who asks, for the audit (default: CYCLONE_ACTOR, or user@host)')
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('(add --help for the usage)')
    .addHelpText('after', EPILOGUE)
    .exitOverride()
    .configureOutput({
      writeErr: (text) => shell.say(text.trimEnd()),
      outputError: (text, write) => write(text.replace(/^error: /, 'cyclone: ')),
    });
  addRuns(program, shell);
  addSteps(program, shell);
  addChanges(program, shell);
  addDeadLetters(program, shell);
  addMaintenance(program, shell);
  addObservation(program, shell);
  addMigrate(program, shell);
  return program;
}
