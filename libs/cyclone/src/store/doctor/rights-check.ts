import { MissingRightsError } from '../../model/errors/index.js';
import { missingGrants } from '../roles.js';
import { ok, type Check } from './finding.js';

/** May the role do all that a worker does? One that may only look is in order for who looks. */
export const checkGrants: Check = async ({ query, schema }) => {
  const [row] = await query(
    `select current_user::text as role,
            (exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace
                      where n.nspname = $1 and c.relname ~ '^cyclone_' and c.relkind = 'r'
                        and has_table_privilege(c.oid, 'insert, update, delete, truncate')))::text as writes`,
    [schema],
  );
  const role = String(row?.role);
  const forWork = await missingGrants(query, schema, 'worker');
  if (forWork.length === 0) return ok('rights', `The role ${role} has the rights that the engine needs.`);
  const forLooking = await missingGrants(query, schema, 'viewer');
  if (forLooking.length === 0 && row?.writes === 'false') {
    return [
      {
        check: 'rights',
        level: 'info',
        message: `The role ${role} may look and change nothing, as a viewer does. It is not the role of the workers.`,
        advice: 'Run the doctor with the role of the workers to examine that one.',
      },
    ];
  }
  const { situation, remedy } = new MissingRightsError(role, schema, forWork);
  return [{ check: 'rights', level: 'error', message: situation, advice: remedy }];
};
