import { checkSchemaName, quoteIdentifier } from './identifier.js';
import { literal } from './literal.js';
import { shippedMigrations, SCHEMA_VERSION, type MigrationFile, type ShippedMigrations } from './migration-files.js';

/**
 * Everything that `migrate` does, as a script for psql: for databases that only an administrator may change. Like `migrate` it applies
 * what is missing and passes over what is there; it refuses a schema that is newer than this library.
 *
 * @param from leaves out what a schema of this version has already; 0 leaves out nothing
 * @throws InvalidOptionError for a schema name that Postgres does not take
 */
export function migrationSql(schema = 'public', { from = 0 }: { readonly from?: number } = {}): string {
  checkSchemaName(schema);
  const shipped = shippedMigrations();
  return [
    'begin isolation level read committed read write;',
    SETTINGS_SQL,
    `select pg_advisory_xact_lock(hashtextextended(${literal(lockName(schema))}, 0));`,
    `create schema if not exists ${quoteIdentifier(schema)};`,
    searchPath(schema),
    refusesOthers(),
    ...shipped.files.filter((file) => file.version > from).map(onceOnly),
    ...functionStatements(shipped).map((sql) => `\n${sql}`),
    'commit;',
    '',
  ].join('\n');
}

/** An application's limits on statements are not made for migrations; `language sql` bodies name functions that come later. */
const SETTINGS = {
  statement_timeout: '0',
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  check_function_bodies: 'off',
};

export const SETTINGS_SQL: string = Object.entries(SETTINGS)
  .map(([name, value]) => `set local ${name} = ${value};`)
  .join('\n');

/** Everything that a migration sets for its transaction. */
export const CHANGED_SETTINGS: readonly string[] = [...Object.keys(SETTINGS), 'search_path'];

/** Functions that say SET search_path FROM CURRENT keep this one for ever (C15). */
export function searchPath(schema: string): string {
  return `set local search_path = ${quoteIdentifier(schema)}, pg_temp;`;
}

/** Replaces the functions, lets nobody call them but their owner and whom an administrator named (C15), and notes which they are. */
export function functionStatements(shipped: ShippedMigrations): string[] {
  const names = shipped.functions.map(({ name }) => literal(name)).join(', ');
  return [
    ...shipped.functions.map(({ sql }) => sql.trimEnd()),
    `do $cyclone$
declare
  v_function regprocedure;
begin
  for v_function in
    select p.oid from pg_proc p join pg_namespace n on n.oid = p.pronamespace
     where n.nspname = current_schema() and p.proname in (${names})
  loop
    execute format('revoke execute on function %s from public', v_function);
  end loop;
end
$cyclone$;`,
    `update cyclone_schema_version set functions = ${literal(shipped.functionsChecksum)}
 where version = (select max(version) from cyclone_schema_version);`,
  ];
}

export function lockName(schema: string): string {
  return `cyclone migrations of ${schema}`;
}

/** A migration in a block that does nothing where it has been applied. */
function onceOnly({ version, name, sql }: MigrationFile): string {
  return `
-- ${name}
do $cyclone$
begin
  if to_regclass('cyclone_schema_version') is not null then
    if exists (select from cyclone_schema_version where version = ${version}) then return; end if;
  end if;
  execute $migration$
${sql.trimEnd()}
$migration$;
end
$cyclone$;`;
}

/** The functions of this library are older than those of a newer schema, and tables without a record have an unknown version. */
function refusesOthers(): string {
  return `do $cyclone$
begin
  if to_regclass('cyclone_schema_version') is not null then
    if exists (select from cyclone_schema_version where version > ${SCHEMA_VERSION}) then
      raise exception 'The schema is newer than this script, which is for version ${SCHEMA_VERSION}: there is nothing to do.';
    end if;
    if exists (select from cyclone_schema_version) then return; end if;
  end if;
  if to_regclass('cyclone_runs') is not null then
    raise exception 'The tables are there, but cyclone_schema_version is empty or gone. npx nestjs-cyclone migrate --adopt records their version again.';
  end if;
end
$cyclone$;`;
}
