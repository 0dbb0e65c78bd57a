import { listed } from '../../model/listed.js';
import type { InspectionStore } from '../inspection-store.js';
import type { OperationsStore } from '../operations-store.js';
import type { Session } from '../session.js';
import { ok, type Finding } from './finding.js';

/** What a check of the work itself has to work with. */
export interface WorkPatient {
  readonly session: Session;
  readonly inspection: InspectionStore;
  readonly operations: OperationsStore;
}

export type WorkCheck = (patient: WorkPatient) => Promise<Finding[]>;

/** Runs that cannot go on by themselves (R24). */
const checkStranded: WorkCheck = async ({ session, operations }) => {
  const runs = await operations.knownStranded(session);
  if (runs.length === 0) return ok('stranded', 'The housekeeping of the workers knows of no stranded run.');
  return [
    {
      check: 'stranded',
      level: 'error',
      message: `Stranded runs: ${listed(runs.map(({ runId, problems }) => `${runId} (${problems[0]})`))}.`,
      advice:
        'cyclone repair stranded-runs. Then look for the cause: isolation, manual UPDATEs, functions changed by hand.',
    },
  ];
};

/** Leases that nobody renews and no sweep takes back. */
const checkLeases: WorkCheck = async ({ session, inspection }) => {
  const open = await inspection.openCounts(session);
  const expired = open.filter((row) => row.expired > 0);
  if (expired.length === 0) return ok('leases', 'No lease has expired.');
  const total = expired.reduce((sum, row) => sum + row.expired, 0);
  const live = (await inspection.workers(session)).filter(({ status }) => status !== 'dead').length;
  return [
    {
      check: 'leases',
      level: live === 0 ? 'error' : 'warning',
      message: `${total} running step(s) of ${listed(expired.map((row) => row.kind))} hold a lease that has expired.`,
      advice:
        live === 0
          ? 'No worker is alive to reclaim them: start one.'
          : 'The sweep of a live worker reclaims them within seconds. If this stays, look at the logs of the workers for `stuck` and `broken` steps.',
    },
  ];
};

/** Workers that ended without a word, and whether anybody is there at all. */
const checkWorkers: WorkCheck = async ({ session, inspection }) => {
  const workers = await inspection.workers(session);
  const dead = workers.filter(({ status }) => status === 'dead');
  const idle = workers.filter(({ status }) => status === 'idle').length;
  const live = workers.length - dead.length;
  const findings: Finding[] = [];
  if (dead.length > 0) {
    findings.push({
      check: 'workers',
      level: 'warning',
      message: `Dead workers: ${listed(dead.map(({ id, lastSeenAt }) => `${id} (last seen ${lastSeenAt})`))}.`,
      advice: 'Their steps are reclaimed when their leases expire. Find out why they ended.',
    });
  }
  if (live === 0) {
    findings.push({
      check: 'workers',
      level: 'warning',
      message: 'No worker is alive.',
      advice: 'Nothing is executed, reclaimed or timed out until an application with workers starts.',
    });
  }
  return findings.length > 0 ? findings : ok('workers', `${live} worker(s) alive, ${idle} of them idle.`);
};

/** What workers say that they suffer from. */
const checkTroubles: WorkCheck = async ({ session, inspection }) => {
  const workers = await inspection.workers(session);
  return workers
    .filter(({ status }) => status !== 'dead')
    .flatMap(({ id, problems }) =>
      problems.map((problem) => ({
        check: 'workers',
        level: 'error',
        message: `Worker ${id} is not healthy. ${problem}`,
        advice: 'Do what it says; health() of the worker and its log say the same.',
      })),
    );
};

/** Steps whose completion transaction gets no connection: the pool of their worker is too small for what its handlers do. */
const checkConnections: WorkCheck = async ({ session, inspection }) => {
  const workers = await inspection.workers(session);
  return workers
    .filter(({ status, waitingForConnection }) => status !== 'dead' && waitingForConnection > 0)
    .map(({ id, waitingForConnection }) => ({
      check: 'connections',
      level: 'warning',
      message: `${waitingForConnection} step(s) on worker ${id} wait for a connection of its pool for their completion transaction.`,
      advice:
        "Set a larger poolSize in its DataSource's options or fewer slots in worker.queues, and look for code that keeps a connection while it waits for something else.",
    }));
};

/** Steps that wait for a worker nobody has started. */
const checkServed: WorkCheck = async ({ session, inspection }) => {
  const unserved = await inspection.unserved(session);
  if (unserved.length === 0) return ok('kinds', 'Every available kind is served.');
  return unserved.map(({ queue, kind, due, oldest }) => ({
    check: 'kinds',
    level: due > 0 ? 'warning' : 'info',
    message: `Nobody serves kind "${kind}" in queue "${queue}": ${due >= 1000 ? 'at least ' : ''}${due} step(s) are due${
      oldest === null ? '' : `, the oldest since ${oldest}`
    }.`,
    advice: 'Start a worker that registers this kind and serves this queue.',
  }));
};

export const workChecks: readonly WorkCheck[] = [
  checkStranded,
  checkLeases,
  checkWorkers,
  checkTroubles,
  checkConnections,
  checkServed,
];
