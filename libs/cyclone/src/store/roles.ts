import { checkSchemaName, quoteIdentifier } from './identifier.js';
import { literal } from './literal.js';
import { shippedMigrations } from './migration-files.js';
import type { Query } from './schema-status.js';

/** What a role is for: a worker submits, works and operates, a viewer looks. */
export type RoleKind = 'worker' | 'viewer';

/** The names of the roles of a schema. */
export interface RoleNames {
  readonly owner: string;
  readonly worker: string;
  readonly viewer: string;
}

export const DEFAULT_ROLES: RoleNames = { owner: 'cyclone_owner', worker: 'cyclone_worker', viewer: 'cyclone_viewer' };

/** What the functions of the engine do with each table, as whoever calls them. Nobody changes or deletes an entry of the audit. */
const WORKER_TABLES: Readonly<Record<string, string>> = {
  cyclone_attempts: 'SELECT, INSERT, UPDATE, DELETE',
  cyclone_audit: 'SELECT, INSERT',
  cyclone_deps: 'SELECT, INSERT, UPDATE, DELETE',
  cyclone_marks: 'SELECT, INSERT, UPDATE, DELETE',
  cyclone_runs: 'SELECT, INSERT, UPDATE, DELETE',
  cyclone_schema_version: 'SELECT',
  cyclone_steps: 'SELECT, INSERT, UPDATE, DELETE',
  cyclone_stranded_runs: 'SELECT, INSERT, UPDATE, DELETE',
  cyclone_workers: 'SELECT, INSERT, UPDATE, DELETE',
};
const VIEWS = ['cyclone_v_dlq', 'cyclone_v_kinds', 'cyclone_v_runs', 'cyclone_v_steps'];
const SEQUENCES = ['cyclone_audit_id_seq', 'cyclone_runs_id_seq'];
/** Looks at the clock, so it is volatile, but changes nothing. */
const CLOCK = 'cyclone_now';

/** The rights on one kind of objects. */
interface Rights {
  readonly tables: Readonly<Record<string, string>>;
  readonly sequences: readonly string[];
  readonly functions: readonly string[];
}

function rightsOf(kind: RoleKind): Rights {
  const { functions } = shippedMigrations();
  const views = Object.fromEntries(VIEWS.map((view) => [view, 'SELECT']));
  if (kind === 'worker') {
    return {
      tables: { ...WORKER_TABLES, ...views },
      sequences: SEQUENCES,
      functions: functions.map(({ name }) => name),
    };
  }
  // A function that says it is stable or immutable cannot write.
  const looking = functions.filter(
    ({ name, sql }) => name === CLOCK || /^language \w+ (stable|immutable)\b/m.test(sql),
  );
  const tables = Object.fromEntries(Object.keys(WORKER_TABLES).map((table) => [table, 'SELECT']));
  return { tables: { ...tables, ...views }, sequences: [], functions: looking.map(({ name }) => name) };
}

/**
 * The roles of a schema and their rights, as a script for psql, to be run after `migrate` and again after each upgrade.
 * @throws InvalidOptionError for a name that Postgres does not take
 */
export function rolesSql(schema = 'public', roles: RoleNames = DEFAULT_ROLES): string {
  checkSchemaName(schema);
  const owner = quoteIdentifier(roles.owner);
  return [
    `-- Run it after \`cyclone migrate\`, and again after each upgrade.`,
    `-- Let the login of your applications be a member of the worker role, one login for all of them, so that they may end each other's`,
    `-- sessions when a worker has died: grant ${quoteIdentifier(roles.worker)} to my_application;`,
    `-- The login that migrates is a member of the owner role, and becomes it first: set role ${owner};`,
    'begin;',
    ...[roles.owner, roles.worker, roles.viewer].map(createRole),
    `create schema if not exists ${quoteIdentifier(schema)};`,
    '',
    '-- Owner: makes and changes the schema.',
    `GRANT USAGE, CREATE ON SCHEMA ${quoteIdentifier(schema)} TO ${owner};`,
    '',
    '-- Worker: submits, works, operates.',
    ...grantsOf(schema, roles.worker, rightsOf('worker')),
    '',
    '-- Viewer: looks at everything, payloads too, and changes nothing.',
    ...grantsOf(schema, roles.viewer, rightsOf('viewer')),
    'commit;',
    '',
  ].join('\n');
}

function createRole(name: string): string {
  return `do $cyclone$ begin
  if not exists (select from pg_roles where rolname = ${literal(name)}) then create role ${quoteIdentifier(name)} nologin; end if;
end $cyclone$;`;
}

function grantsOf(schema: string, role: string, { tables, sequences, functions }: Rights): string[] {
  return [
    grantOnSchema(schema, role),
    ...Object.entries(tables).map(
      ([table, rights]) => `GRANT ${rights} ON ${nameIn(schema, table)} TO ${quoteIdentifier(role)};`,
    ),
    ...sequences.map((sequence) => grantOnSequence(schema, role, sequence)),
    ...grantOnFunctions(schema, role, functions),
  ];
}

const nameIn = (schema: string, name: string): string => `${quoteIdentifier(schema)}.${name}`;
const grantOnSchema = (schema: string, role: string): string =>
  `GRANT USAGE ON SCHEMA ${quoteIdentifier(schema)} TO ${quoteIdentifier(role)};`;
const grantOnSequence = (schema: string, role: string, sequence: string): string =>
  `GRANT USAGE ON SEQUENCE ${nameIn(schema, sequence)} TO ${quoteIdentifier(role)};`;

function grantOnFunctions(schema: string, role: string, functions: readonly string[]): string[] {
  if (functions.length === 0) return [];
  const names = functions.map((name) => nameIn(schema, name)).join(', ');
  return [`GRANT EXECUTE ON FUNCTION ${names} TO ${quoteIdentifier(role)};`];
}

/**
 * The GRANTs without which the role of this connection is no worker, or no viewer; none for a superuser and the owner. Tries each right
 * by itself; of what is not there it says nothing.
 */
export async function missingGrants(query: Query, schema: string, kind: RoleKind): Promise<string[]> {
  const { tables, sequences, functions } = rightsOf(kind);
  const pairs = Object.entries(tables).flatMap(([table, rights]) => rights.split(', ').map((right) => [table, right]));
  const rows = await query(
    `with place as (select oid from pg_namespace where nspname = $1)
     select 'schema' as kind, '' as name, '' as rights, current_user::text as role from place where not has_schema_privilege(oid, 'usage')
     union all
     select 'table', c.relname::text, string_agg(n.privilege, ', ' order by n.i), current_user::text
       from unnest($2::text[], $3::text[]) with ordinality n(name, privilege, i)
       join pg_class c on c.relname = n.name and c.relnamespace = (select oid from place) and c.relkind in ('r', 'v')
      where not has_table_privilege(c.oid, n.privilege) group by c.relname
     union all
     select 'sequence', c.relname::text, '', current_user::text from pg_class c
      where c.relname = any($4::text[]) and c.relnamespace = (select oid from place) and c.relkind = 'S' and not has_sequence_privilege(c.oid, 'usage')
     union all
     select 'function', p.proname::text, '', current_user::text from pg_proc p
      where p.proname = any($5::text[]) and p.pronamespace = (select oid from place) and not has_function_privilege(p.oid, 'execute')
      order by 1, 2`,
    [schema, pairs.map(([table]) => table), pairs.map(([, right]) => right), sequences, functions],
  );
  const role = String(rows[0]?.role);
  const of = (what: string): typeof rows => rows.filter((row) => row.kind === what);
  return [
    ...of('schema').map(() => grantOnSchema(schema, role)),
    ...of('table').map(
      ({ name, rights }) => `GRANT ${String(rights)} ON ${nameIn(schema, String(name))} TO ${quoteIdentifier(role)};`,
    ),
    ...of('sequence').map(({ name }) => grantOnSequence(schema, role, String(name))),
    ...grantOnFunctions(
      schema,
      role,
      of('function').map(({ name }) => String(name)),
    ),
  ];
}
