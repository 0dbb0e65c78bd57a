import { listed } from '../../model/listed.js';
import { quoteIdentifier } from '../identifier.js';
import { shippedMigrations } from '../migration-files.js';
import { readSchemaStatus, schemaProblem } from '../schema-status.js';
import { checkClockSetBack } from './clock-check.js';
import { EXPECTED_INDEXES, EXPECTED_TABLES } from './expected-schema.js';
import { ok, type Check, type Finding } from './finding.js';

/** Does the schema fit the library, and was every migration applied? */
export const checkVersion: Check = async ({ query, schema }) => {
  const status = await readSchemaStatus(query, schema);
  const problem = schemaProblem(status);
  if (!problem) return ok('schema', `The schema has version ${status.version} and works with this library.`);
  return [{ check: 'schema', level: 'error', message: problem.situation, advice: problem.remedy }];
};

/** Are tables, columns and indexes there as the migrations made them? More than these is no drift: a newer schema has more. */
export const checkTables: Check = async ({ query, schema }) => {
  const columns = await query(
    `select c.relname || '.' || a.attname || ' ' || t.typname as name
       from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
       join pg_type t on t.oid = a.atttypid
      where n.nspname = $1 and c.relname ~ '^cyclone_' and c.relkind in ('r', 'v') and a.attnum > 0 and not a.attisdropped`,
    [schema],
  );
  const indexes = await query(
    `select i.relname as name, (x.indisvalid and x.indisready)::text as valid
       from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid join pg_namespace n on n.oid = t.relnamespace
      where n.nspname = $1 and t.relname ~ '^cyclone_'`,
    [schema],
  );
  const findings: Finding[] = [];
  const found = new Set(columns.map((row) => row.name));
  const expected = Object.entries(EXPECTED_TABLES).flatMap(([table, list]) =>
    list.split(', ').map((column) => `${table}.${column}`),
  );
  const missing = expected.filter((name) => !found.has(name));
  if (missing.length > 0) {
    findings.push({
      check: 'tables',
      level: 'error',
      message: `Missing, or of another type: ${listed(missing)}.`,
      advice: 'Somebody changed the tables by hand. Compare with `npx nestjs-cyclone migrate sql` and undo it.',
    });
  }
  const valid = new Set(indexes.filter((row) => row.valid === 'true').map((row) => row.name));
  const absent = EXPECTED_INDEXES.filter((name) => !indexes.some((row) => row.name === name));
  if (absent.length > 0) {
    findings.push({
      check: 'indexes',
      level: 'error',
      message: `Missing indexes: ${listed(absent)}.`,
      advice: 'Create them again as `npx nestjs-cyclone migrate sql` shows, with CREATE INDEX CONCURRENTLY.',
    });
  }
  for (const name of indexes.map((row) => String(row.name)).filter((index) => !valid.has(index))) {
    findings.push({
      check: 'indexes',
      level: 'error',
      message: `The index ${name} is invalid: it is kept up to date, but not used.`,
      advice: `REINDEX INDEX CONCURRENTLY ${quoteIdentifier(schema)}.${quoteIdentifier(name)}`,
    });
  }
  return findings.length > 0 ? findings : ok('tables', 'Tables, columns and indexes are as the migrations made them.');
};

/** Are the functions those of this library, letter by letter? */
export const checkFunctions: Check = async ({ query, schema }) => {
  const shipped = shippedMigrations();
  const status = await readSchemaStatus(query, schema);
  if (status.functionsChecksum !== shipped.functionsChecksum) {
    return [
      {
        check: 'functions',
        level: status.version !== null && status.version > status.required ? 'info' : 'warning',
        message: 'The functions in the database were installed by another version of the library.',
        advice:
          'Fine during a rolling deploy. Otherwise run npx nestjs-cyclone migrate with the newest version in use.',
      },
    ];
  }
  const installed = await query(
    `select p.proname as name, p.prosrc as body from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = $1`,
    [schema],
  );
  const changed = shipped.functions
    .filter(({ name, sql }) => !installed.some((row) => row.name === name && String(row.body) === bodyOf(sql)))
    .map(({ name }) => name);
  if (changed.length === 0) return ok('functions', 'The functions are those of this library.');
  return [
    {
      check: 'functions',
      level: 'error',
      message: `Functions that are missing or were changed by hand: ${listed(changed)}.`,
      advice: `Make migrate install them again: UPDATE ${quoteIdentifier(schema)}.cyclone_schema_version SET functions = NULL, then npx nestjs-cyclone migrate.`,
    },
  ];
};

/** Is autovacuum on for the engine's tables? */
export const checkVacuum: Check = async ({ query, schema }) => {
  const rows = await query(
    `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and c.relname ~ '^cyclone_' and c.relkind = 'r'
        and exists (select from unnest(c.reloptions) o where o ~* '^autovacuum_enabled=(false|off|0|no)$')`,
    [schema],
  );
  const [server] = await query(
    `select current_setting('autovacuum') as autovacuum, current_setting('track_counts') as counts`,
  );
  const findings: Finding[] = [];
  if (server?.autovacuum !== 'on' || server.counts !== 'on') {
    findings.push({
      check: 'vacuum',
      level: 'error',
      message: 'Autovacuum is off: finished work piles up in the indexes, and claims slow down.',
      advice: 'ALTER SYSTEM SET autovacuum = on; ALTER SYSTEM SET track_counts = on; then SELECT pg_reload_conf().',
    });
  }
  if (rows.length > 0) {
    findings.push({
      check: 'vacuum',
      level: 'error',
      message: `Autovacuum is disabled for ${listed(rows.map((row) => row.name))}.`,
      advice: 'ALTER TABLE … RESET (autovacuum_enabled)',
    });
  }
  return findings.length > 0 ? findings : ok('vacuum', 'Autovacuum takes care of all tables.');
};

export const schemaChecks: readonly Check[] = [checkTables, checkFunctions, checkVacuum, checkClockSetBack];

/** What Postgres keeps of a function: the text between its dollar quotes. */
function bodyOf(sql: string): string {
  return sql.slice(sql.indexOf('$$') + 2, sql.lastIndexOf('$$'));
}
