import { quoteIdentifier } from '../identifier.js';
import type { Check } from './finding.js';

/** Work that was timed before the clock was set back comes later by as much; what was due stays due. */
export const checkClockSetBack: Check = async ({ query, schema }) => {
  const quoted = quoteIdentifier(schema);
  const [row] = await query(
    `select ${quoted}.cyclone_iso(c.was) as was, ${quoted}.cyclone_iso(${quoted}.cyclone_now()) as now
       from (select max(a.at) as was
               from (select w.last_seen_at as at from ${quoted}.cyclone_workers w
                     union all select m.at from ${quoted}.cyclone_marks m where m.name = 'clock_was') a) c
      where c.was > ${quoted}.cyclone_now() + interval '2 seconds'`,
  );
  if (!row) return [];
  return [
    {
      check: 'clock',
      level: 'warning',
      message: `The database's clock has been set back: it was ${String(row.was)}, and now it is ${String(row.now)}.`,
      advice:
        'What was due then stays due, once a worker is alive. Backoffs, delays and deadlines of that time end later by as much; `cyclone explain` names ' +
        'them. Let the clock of a database be slewed, not stepped.',
    },
  ];
};
