import type pg from 'pg';

/** All that migrations make in a Postgres schema, as texts by name, and what cyclone_schema_version says, but the times. */
export async function describeSchema(client: pg.Client, schema: string): Promise<Record<string, string>> {
  const { rows } = await client.query<{ name: string; text: string | null }>(
    `with relation as (
       select c.* from pg_class c
        where c.relnamespace = (select oid from pg_namespace where nspname = $1) and c.relname ~ '^cyclone_'
     )
     select 'relation ' || relname as name, concat_ws(' ', relkind, reloptions, relacl, relpersistence) as text from relation
     union all
     select 'column ' || r.relname || '.' || a.attname,
            concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnum, a.attnotnull, a.attidentity, a.attcollation::regcollation,
                      pg_get_expr(d.adbin, d.adrelid))
       from relation r join pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
       left join pg_attrdef d on d.adrelid = r.oid and d.adnum = a.attnum
     union all
     select 'index ' || r.relname, pg_get_indexdef(r.oid) from relation r where r.relkind = 'i'
     union all
     select 'view ' || r.relname, pg_get_viewdef(r.oid) from relation r where r.relkind = 'v'
     union all
     select 'constraint ' || r.relname || '.' || o.conname, pg_get_constraintdef(o.oid)
       from relation r join pg_constraint o on o.conrelid = r.oid
     union all
     select 'function ' || p.oid::regprocedure, concat_ws(' ', pg_get_functiondef(p.oid), p.proacl)
       from pg_proc p where p.pronamespace = (select oid from pg_namespace where nspname = $1)`,
    [schema],
  );
  const table = `"${schema.replaceAll('"', '""')}".cyclone_schema_version`;
  const versions = await client.query<{ text: string }>(
    `select row(version, name, compatible_from, functions)::text as text from ${table} order by version`,
  );
  return {
    ...Object.fromEntries(rows.map(({ name, text }) => [name, text ?? ''])),
    versions: versions.rows.map(({ text }) => text).join(),
  };
}
