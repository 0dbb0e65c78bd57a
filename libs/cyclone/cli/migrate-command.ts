import { checkSchemaName } from '#cyclone/store/identifier.js';
import { migrate, migrationSql, migrationStatus, type MigrationStatus } from '#cyclone/store/migrator.js';
import { ExitCode, UsageError, type CommandLine } from './command-line.js';
import { withDatabase } from './database.js';

/** `cyclone migrate`: brings the schema to the version of this package, or says how it stands. */
export async function migrateCommand(line: CommandLine): Promise<ExitCode> {
  const { schema = 'public', sql, status } = line.values;
  checkSchemaName(schema, '--schema');
  if (sql && status) throw new UsageError('--sql and --status exclude each other.');
  if (sql) {
    process.stdout.write(await migrationSql(schema));
    return ExitCode.done;
  }
  if (status) return showStatus(await withDatabase(line, (client) => migrationStatus(client, { schema })), line);

  const result = await withDatabase(line, (client) => migrate(client, { schema, log: line.say }));
  if (result.applied.length === 0 && !result.functionsInstalled) line.say('There is nothing to do.');
  process.stdout.write(`${result.version}\n`);
  return ExitCode.done;
}

function showStatus(status: MigrationStatus, { say }: CommandLine): ExitCode {
  const { schema, version, required, pending, functionsCurrent, problem } = status;
  const lines = [
    `schema       ${schema}`,
    `version      ${version ?? 'none'}`,
    `this package ${required}`,
    `pending      ${pending.length > 0 ? pending.join(' ') : 'none'}`,
    `functions    ${functionsState(version, functionsCurrent, required)}`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
  if (problem) say(problem.message);
  const upToDate = !problem && (functionsCurrent || (version ?? 0) > required);
  return upToDate ? ExitCode.done : ExitCode.failed;
}

function functionsState(version: number | null, current: boolean, required: number): string {
  if (current) return 'current';
  if (version === null) return 'none';
  return version > required ? 'of a newer version' : 'of another version: migrate replaces them';
}
