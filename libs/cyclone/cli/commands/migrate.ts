import { Argument, type Command } from 'commander';
import { checkSchemaName } from '#cyclone/store/identifier.js';
import { migrationSql } from '#cyclone/store/migration-script.js';
import { DEFAULT_ROLES, rolesSql, type RoleNames } from '#cyclone/store/roles.js';
import { migrate, migrationStatus, type MigrationStatus } from '#cyclone/store/migrator.js';
import { ExitCode, SCHEMA_OPTION, UsageError, type Globals } from '../command-line.js';
import type { Shell } from '../shell.js';
import { withPool } from '../database.js';
import { writeFields } from '../output/rows.js';
import { whole } from '../values.js';

interface MigrateOptions extends Globals {
  readonly adopt?: boolean;
  readonly status?: boolean;
  readonly sql?: boolean;
  readonly roles?: true | string;
  readonly from: number;
}

/** `cyclone migrate`: brings the schema to the version of this package, or says how it stands. */
export function addMigrate(program: Command, shell: Shell): void {
  program
    .command('migrate')
    .description('create the schema or bring it to the version of this package')
    .addArgument(
      new Argument(
        '[what]',
        `up: do it; status: only compare, exit code ${ExitCode.checkFailed} when there is something to do; sql: print a script for psql`,
      )
        .choices(['up', 'status', 'sql'])
        .default('up'),
    )
    .option('--adopt', 'record the version of tables again whose record was emptied or dropped, after comparing them')
    .option('--status', 'the same as `migrate status`')
    .option('--sql', 'the same as `migrate sql`')
    .option(
      '--roles [names]',
      'with sql: print the roles of the schema and their rights instead; names as owner,worker,viewer ' +
        `(default: ${Object.values(DEFAULT_ROLES).join()})`,
    )
    .option('--from <version>', 'with sql: leave out what a schema of this version has already', whole, 0)
    .action(async (argument: string, _own: unknown, command: Command) => {
      const options = command.optsWithGlobals<MigrateOptions>();
      checkSchemaName(options.schema, SCHEMA_OPTION);
      if (options.sql && options.status) throw new UsageError('--sql and --status exclude each other.');
      const what = options.sql ? 'sql' : options.status ? 'status' : argument;
      if (options.roles !== undefined && what !== 'sql') throw new UsageError('--roles goes with sql.');
      if (options.roles !== undefined) process.stdout.write(rolesSql(options.schema, roleNames(options.roles)));
      else if (what === 'sql') process.stdout.write(migrationSql(options.schema, { from: options.from }));
      else if (what === 'status') await status(options, shell);
      else await up(options, shell, isSchemaNamed(command));
    });
}

function roleNames(given: true | string): RoleNames {
  if (given === true) return DEFAULT_ROLES;
  const [owner, worker, viewer, ...more] = given.split(',');
  if (!owner || !worker || !viewer || more.length > 0) {
    throw new UsageError('--roles takes three names: owner,worker,viewer.');
  }
  return { owner, worker, viewer };
}

/** Whether somebody has said which schema is meant. */
function isSchemaNamed(command: Command): boolean {
  return Boolean(process.env.CYCLONE_SCHEMA) || command.getOptionValueSourceWithGlobals('schema') !== 'default';
}

async function up(options: MigrateOptions, shell: Shell, schemaIsNamed: boolean): Promise<void> {
  const { schema, adopt = false } = options;
  const result = await withPool(options, async (pool) => {
    const client = await pool.connect();
    try {
      // A second installation is hardly what is meant by somebody who has forgotten --schema.
      const { elsewhere, problem } = await migrationStatus(client, { schema });
      if (!schemaIsNamed && elsewhere.length > 0 && problem) throw problem;
      return await migrate(client, { schema, adopt, log: (message) => shell.say(message) });
    } finally {
      client.release();
    }
  });
  if (result.applied.length === 0 && !result.functionsInstalled) shell.say('There is nothing to do.');
  if (options.format === 'json') writeFields('json', {}, { json: result });
  else process.stdout.write(`${result.version}\n`);
}

async function status(options: Globals, shell: Shell): Promise<void> {
  const found = await withPool(options, async (pool) => {
    const client = await pool.connect();
    try {
      return await migrationStatus(client, { schema: options.schema });
    } finally {
      client.release();
    }
  });
  const { schema, version, required, pending, functionsCurrent, problem } = found;
  writeFields(
    options.format,
    {
      schema,
      version: version ?? 'none',
      'this package': required,
      pending: pending.length > 0 ? pending.join(' ') : 'none',
      functions: functionsState(found),
    },
    { json: { schema, version, required, pending, functionsCurrent, problem: problem?.message ?? null } },
  );
  if (problem) shell.say(problem.message);
  if (problem || (!functionsCurrent && (version ?? 0) <= required)) shell.fail(ExitCode.checkFailed);
}

function functionsState({ version, functionsCurrent, required }: MigrationStatus): string {
  if (functionsCurrent) return 'current';
  if (version === null) return 'none';
  return version > required ? 'of a newer version' : 'of another version: migrate replaces them';
}
