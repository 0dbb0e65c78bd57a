import type { Connections } from '../connections.js';
import { sharesSessions } from '../pooler.js';
import { ok, type Finding } from './finding.js';

/** Do transactions share the sessions of the server? Workers find that out themselves when they start, and work on without what cannot work. */
export async function checkPooler(connections: Connections): Promise<Finding[]> {
  if (!(await sharesSessions(connections))) return ok('pooler', 'Connections keep their session of the server.');
  return [
    {
      check: 'pooler',
      level: 'info',
      message:
        'Connections lead through a pooler in transaction mode: statements cannot be prepared by name, and notifications are not heard.',
      advice:
        'Set preparedStatements: false and listen: false, or let the DataSource connect directly or through a pooler in session mode, which is faster.',
    },
  ];
}
