import { SchemaVersionError } from '../model/errors/index.js';
import { listed } from '../model/listed.js';
import { quoteIdentifier } from './identifier.js';
import { searchPath } from './migration-script.js';
import { SCHEMA_VERSION, type MigrationFile } from './migration-files.js';
import type { Query } from './schema-status.js';

/** Where a schema is not what the migrations make. */
interface Difference {
  readonly missing: readonly string[];
  readonly unknown: readonly string[];
}

/**
 * Records the version of a schema whose `cyclone_schema_version` was emptied or dropped, after comparing it with what the migrations
 * make: they run once more among the temporary tables of this session, and the catalogs of both are compared. Puts back the rows that
 * migrations write. Expects the transaction of the migrator, at READ COMMITTED, and leaves its search_path on the schema.
 *
 * @returns the version that the schema has
 * @throws SchemaVersionError with the differences when it is none that this library makes; nothing was changed then
 */
export async function adoptSchema(query: Query, files: readonly MigrationFile[], schema: string): Promise<number> {
  await query(searchPath(schema));
  const present = await describe(query, schema);
  let closest: Difference | undefined;
  for (let count = files.length; count > 0; count--) {
    await query('savepoint cyclone_adopt');
    await query('set local search_path = pg_temp');
    for (const { sql } of files.slice(0, count)) await query(sql);
    const [{ nspname: temporary } = { nspname: '' }] = await query(
      'select nspname from pg_namespace where oid = pg_my_temp_schema()',
    );
    const difference = compare(await describe(query, String(temporary)), present);
    if (difference === undefined) {
      await takeRows(query, schema, String(temporary));
      await query(searchPath(schema));
      return count;
    }
    await query('rollback to savepoint cyclone_adopt');
    closest = closest && sizeOf(closest) <= sizeOf(difference) ? closest : difference;
  }
  throw misfit(schema, closest);
}

/** One line for each column, constraint, index and view of the engine, in words that do not depend on the schema. */
async function describe(query: Query, schema: string): Promise<Set<string>> {
  const rows = await query(
    `with relation as (
       select c.oid, c.relname as name, c.relkind from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = $1 and c.relname ~ '^cyclone_' and c.relkind in ('r', 'p', 'v', 'm', 'f')
     )
     select format('column %s.%s %s%s%s%s', r.name, a.attname, format_type(a.atttypid, a.atttypmod), case when a.attnotnull then ' not null' end,
                   ' default ' || pg_get_expr(d.adbin, d.adrelid), ' identity ' || nullif(a.attidentity::text, '')) as line
       from relation r
       join pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
       left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
     union all
     select format('constraint %s of %s %s', t.conname, r.name, pg_get_constraintdef(t.oid, true))
       from relation r join pg_constraint t on t.conrelid = r.oid and t.contype in ('c', 'p', 'u', 'x')
     union all
     select format('%sindex %s of %s %s', case when x.indisunique then 'unique ' end, i.relname, r.name,
                   substring(pg_get_indexdef(i.oid) from ' USING .*$'))
       from relation r join pg_index x on x.indrelid = r.oid join pg_class i on i.oid = x.indexrelid
     union all
     select format('view %s %s', r.name, pg_get_viewdef(r.oid, true)) from relation r where r.relkind = 'v'
     union all
     select format('relation %s of kind %s', r.name, r.relkind) from relation r`,
    [schema],
  );
  return new Set(rows.map(({ line }) => String(line)));
}

/** undefined when they are the same. The table of versions may be missing, and an index of the application harms nothing. */
function compare(made: ReadonlySet<string>, present: ReadonlySet<string>): Difference | undefined {
  const versionsAreGone = ![...present].some(isAboutVersions);
  const missing = [...made].filter((line) => !present.has(line) && !(versionsAreGone && isAboutVersions(line)));
  const unknown = [...present].filter((line) => !made.has(line) && !line.startsWith('index '));
  return missing.length + unknown.length === 0 ? undefined : { missing, unknown };
}

const isAboutVersions = (line: string): boolean =>
  /^[a-z ]+ cyclone_schema_version\b|of cyclone_schema_version\b/.test(line);

const sizeOf = ({ missing, unknown }: Difference): number => missing.length + unknown.length;

/** Puts the rows that the migrations write where they are missing, and removes the temporary tables. */
async function takeRows(query: Query, schema: string, temporary: string): Promise<void> {
  const target = quoteIdentifier(schema);
  const source = quoteIdentifier(temporary);
  await query(
    `create table if not exists ${target}.cyclone_schema_version (like ${source}.cyclone_schema_version including all)`,
  );
  const tables = await query(
    `select relname as name from pg_class where relnamespace = pg_my_temp_schema() and relkind = 'r' and relname ~ '^cyclone_'`,
  );
  for (const { name } of tables) {
    const table = quoteIdentifier(String(name));
    const [found] = await query(`select (exists (select from ${source}.${table}))::text as rows`);
    if (found?.rows !== 'true') continue;
    await query(`insert into ${target}.${table} select * from ${source}.${table} on conflict do nothing`);
  }
  const names = tables.map(({ name }) => `${source}.${quoteIdentifier(String(name))}`);
  await query(`drop table ${names.join(', ')} cascade`);
}

function misfit(schema: string, { missing, unknown }: Difference = { missing: [], unknown: [] }): SchemaVersionError {
  const say = (what: string, lines: readonly string[]): string =>
    lines.length === 0 ? '' : ` ${what}: ${listed(lines.map((line) => line.replace(/\s+/g, ' ').slice(0, 120)))}.`;
  return new SchemaVersionError(
    null,
    SCHEMA_VERSION,
    `Compare with \`npx nestjs-cyclone migrate sql\` and undo the difference; where nothing in it is needed any more, drop the tables and migrate.`,
    `The tables in the schema ${quoteIdentifier(schema)} are not what this library makes, so their version was not recorded.` +
      say('Missing, or made in another way', missing) +
      say('Not known', unknown),
  );
}
