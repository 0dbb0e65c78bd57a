import { sqlStateOf } from '../../model/sql-state.js';

const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/^53300/, 'Raise CONNECTION LIMIT of the role or the database, or max_connections, or set a smaller poolSize.'],
  [/^53/, 'The server is short of something: look at its disk and memory.'],
  [/^25006/, 'Nothing can be written until that ends; the worker keeps trying.'],
  [/^28/, 'Look at the credentials of the DataSource and at pg_hba.conf.'],
  [/^3D/, 'Look at the database that the DataSource names.'],
  [/^42501/, 'Give the role of the worker its rights again; cyclone doctor names them.'],
  [/^42/, 'Look whether the schema is complete, with cyclone doctor.'],
  [/^57P/, 'The server ends or has just begun; the worker keeps trying.'],
];

/** What to do about an error of the database. */
export function remedyOf(error: unknown): string {
  const state = sqlStateOf(error);
  const known = state === undefined ? undefined : REMEDIES.find(([states]) => states.test(state));
  if (known) return known[1];
  return state === undefined
    ? 'Look whether the server answers at all; the worker keeps trying.'
    : 'Look it up in the log of the server.';
}
