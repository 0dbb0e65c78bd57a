import type { Command } from 'commander';
import type { WorkerStatus } from '#cyclone/store/inspection-store.js';
import type { Finding } from '#cyclone/store/doctor/doctor.js';
import type { OpenWork, Stats } from '#cyclone/store/stats.js';
import { ExitCode, UsageError } from '../command-line.js';
import { operate, type Shell } from '../shell.js';
import { age, RowWriter, time, writeFields, type Column, type Listing } from '../output/rows.js';

/** `cyclone stats`, `workers` and `doctor`: how everything stands. */
export function addObservation(program: Command, shell: Shell): void {
  program
    .command('stats')
    .description('count runs and steps, and show the backlog of each queue and kind')
    .action(
      operate(shell, async ({ operator, options: { format } }) => {
        if (format === 'ids') throw new UsageError('This command has no ids to print: --format table or json.');
        const stats = await operator.stats();
        if (format === 'json') writeFields(format, {}, { json: stats });
        else writeStats(stats);
      }),
    );
  program
    .command('workers')
    .description('list the known workers: idle, busy, draining or dead')
    .action(
      operate(shell, async ({ operator, options: { format } }) => {
        const writer = new RowWriter<WorkerStatus>(format, WORKERS);
        writer.write(await operator.workers());
        writer.end();
        if (writer.written === 0) shell.say('No worker is known. Start an application with workers.');
      }),
    );
  program
    .command('doctor')
    .description(
      `examine the server, the schema and the work; exit code ${ExitCode.checkFailed} with a warning or an error`,
    )
    .action(
      operate(shell, async ({ operator, options: { format } }) => {
        const writer = new RowWriter<Finding>(format, FINDINGS);
        const findings = await operator.doctor();
        const bad = findings.filter(({ level }) => level === 'warning' || level === 'error');
        writer.write(findings);
        writer.end();
        if (bad.length > 0) shell.fail(ExitCode.checkFailed);
        shell.say(bad.length === 0 ? 'Nothing to do.' : `${bad.length} finding(s) that need you.`);
      }),
    );
}

function writeStats(stats: Stats): void {
  const count = ({ count: n, capped }: { count: number; capped: boolean }): string => `${n}${capped ? '+' : ''}`;
  const counts = (all: Stats['runs'] | Stats['steps']): string =>
    Object.entries(all)
      .filter(([, { count: n }]) => n > 0)
      .map(([state, n]) => `${count(n)} ${state}`)
      .join(', ');
  const { workers, health } = stats;
  writeFields('table', {
    runs: counts(stats.runs),
    steps: counts(stats.steps),
    'oldest available': age(stats.oldestAvailableAgeMs),
    workers: `${workers.live} live, ${workers.draining} draining, ${workers.dead} dead`,
    'stranded runs': health.strandedRuns,
    'expired leases': health.expiredLeases,
    'worker problems': health.workerProblems
      .map(({ worker, problems }) => `${worker}: ${problems.join(' ')}`)
      .join(', '),
    'not served': health.unserved.map(({ queue, kind, due }) => `${kind} in queue ${queue} (${due} due)`).join(', '),
  });
  for (const [title, work] of [
    ['QUEUE', stats.queues],
    ['KIND', stats.kinds],
  ] as const) {
    if (work.length === 0) continue;
    process.stdout.write('\n');
    new RowWriter<OpenWork>('table', { columns: openColumns(title) }).write(work);
  }
}

const openColumns = (title: string): Column<OpenWork>[] => [
  { title, value: ({ name }) => name },
  { title: 'PENDING', value: ({ pending }) => pending },
  { title: 'AVAILABLE', value: ({ available }) => available },
  { title: 'DUE', value: ({ due }) => due },
  { title: 'RUNNING', value: ({ running }) => running },
  { title: 'WAITING', value: ({ waiting }) => waiting },
  { title: 'PAUSED', value: ({ paused }) => paused },
  { title: 'OLDEST DUE', value: ({ oldestAvailableAgeMs }) => age(oldestAvailableAgeMs) },
];

const WORKERS: Listing<WorkerStatus> = {
  columns: [
    { title: 'WORKER', value: ({ id }) => id },
    { title: 'STATUS', value: ({ status }) => status },
    { title: 'RUNNING', value: ({ running }) => running },
    { title: 'SLOTS', value: ({ queues }) => slots(queues) },
    { title: 'HOST', value: ({ host }) => host },
    { title: 'PID', value: ({ pid }) => pid },
    { title: 'VERSION', value: ({ version }) => version },
    { title: 'STARTED', value: ({ startedAt }) => time(startedAt) },
    { title: 'LAST SEEN', value: ({ lastSeenAt }) => time(lastSeenAt) },
    { title: 'KINDS', value: ({ kinds }) => kinds.join(' ') },
    { title: 'PROBLEMS', value: ({ problems }) => problems.join(' ') },
  ],
  id: ({ id }) => id,
};

const slots = (queues: WorkerStatus['queues']): string =>
  Object.entries(queues)
    .map(([queue, n]) => `${queue}:${n}`)
    .join(' ');

const FINDINGS: Listing<Finding> = {
  whole: true,
  columns: [
    { title: 'LEVEL', value: ({ level }) => level },
    { title: 'CHECK', value: ({ check }) => check },
    { title: 'FINDING', value: ({ message, advice }) => (advice === null ? message : `${message} → ${advice}`) },
  ],
};
