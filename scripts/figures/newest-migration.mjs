import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The file name of the newest numbered migration: a released one never changes, so its name is the schema. @param {string} root */
export function newestMigration(root) {
  const newest = readdirSync(join(root, 'migrations'))
    .filter((file) => /^\d{4}_.*\.sql$/.test(file))
    .toSorted()
    .at(-1);
  if (!newest) throw new Error('There is no migration.');
  return newest;
}
