import type { Command } from 'commander';
import type { PurgeProgress, RepairedRun } from '#cyclone/client/operator-client.js';
import type { Duration } from '#cyclone/model/duration.js';
import { operate, type Shell } from '../shell.js';
import { interruptible } from '../interrupt.js';
import { actorOf } from '../operator.js';
import { Progress } from '../output/progress.js';
import { RowWriter, writeFields, type Listing } from '../output/rows.js';
import { dryRun, duration, reason, whole } from '../values.js';

interface RepairOptions {
  readonly batch: number;
  readonly dryRun?: boolean;
  readonly reason?: string;
}
interface PurgeOptions {
  readonly olderThan?: Duration;
  readonly defaultAge?: Duration;
  readonly limit?: number;
  readonly dryRun?: boolean;
  readonly reason?: string;
}

/** `cyclone repair stranded-runs` and `cyclone purge`. */
export function addMaintenance(program: Command, shell: Shell): void {
  const repair = program.command('repair').description('mend what an engine with a bug, or a manual change, has left');
  repair
    .command('stranded-runs')
    .description('mend running runs that cannot go on by themselves; safe on a live database')
    .option('--batch <n>', 'runs to look for at a time', whole, 100)
    .addOption(reason())
    .addOption(dryRun())
    .action(
      operate<RepairOptions>(shell, async ({ operator, options }) => {
        const writer = new RowWriter<RepairedRun>(options.format, REPAIRED);
        const progress = new Progress('runs', undefined);
        await interruptible(shell, async (signal) => {
          const runs = await operator.repairStrandedRuns({
            batch: options.batch,
            dryRun: options.dryRun,
            actor: actorOf(options),
            reason: options.reason,
            signal,
            onRun: (run) => {
              progress.end();
              writer.write([run]);
              progress.update(writer.written);
            },
          });
          progress.end();
          writer.end();
          shell.say(options.dryRun ? `Found ${runs} run(s) to repair.` : `Repaired ${runs} run(s).`);
        });
      }),
    );
  program
    .command('purge')
    .description('delete runs that are over: older than --older-than, or than the retention of their steps')
    .option('--older-than <duration>', 'finished longer ago, such as 30d (default: what their steps say)', duration)
    .option('--default-age <duration>', 'the retention of steps that have none of their own', duration)
    .option('--limit <n>', 'runs to delete at most (default: all)', whole)
    .addOption(reason())
    .addOption(dryRun())
    .action(
      operate<PurgeOptions>(shell, async ({ operator, options }) => {
        const progress = new Progress('runs', options.limit);
        let last: PurgeProgress = { runs: 0, steps: 0, blocked: [] };
        await interruptible(shell, async (signal) => {
          await operator.purgeTerminalRuns({
            olderThan: options.olderThan,
            defaultAge: options.defaultAge,
            limit: options.limit,
            dryRun: options.dryRun,
            actor: actorOf(options),
            reason: options.reason,
            signal,
            onProgress: (now) => {
              last = now;
              progress.update(now.runs);
            },
          });
        });
        progress.end();
        const { runs, steps, blocked } = last;
        writeFields(options.format, { runs, steps, blocked: blocked.length }, { json: last });
        if (options.dryRun) shell.say('Nothing was deleted.');
      }),
    );
}

const REPAIRED: Listing<RepairedRun> = {
  columns: [
    { title: 'RUN', value: ({ runId }) => runId },
    { title: 'WORKFLOW', value: ({ workflow }) => workflow },
    { title: 'STRANDED', value: ({ stranded }) => (stranded ? 'yes' : 'not yet') },
    { title: 'OUTCOME', value: ({ outcome }) => outcome },
    { title: 'PROBLEMS', value: ({ problems }) => problems.join('; ') },
  ],
  id: ({ runId }) => runId,
};
