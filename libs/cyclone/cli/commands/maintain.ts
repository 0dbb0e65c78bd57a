import type { Command } from 'commander';
import type { PurgeOptions, PurgeProgress, RepairedRun, RepairOptions } from '#cyclone/client/operator-client.js';
import type { Duration } from '#cyclone/model/duration.js';
import { operate, type Shell } from '../shell.js';
import { interruptible } from '../interrupt.js';
import { actorOf } from '../operator.js';
import { Progress } from '../output/progress.js';
import { RowWriter, writeFields, type Listing } from '../output/rows.js';
import { addBulk, duration, nothingChanged, reason, whole, type BulkFlags } from '../values.js';

interface RepairFlags extends BulkFlags {
  readonly batch: number;
  readonly reason?: string;
}
interface PurgeFlags extends BulkFlags {
  readonly olderThan?: Duration;
  readonly defaultAge?: Duration;
  readonly limit?: number;
  readonly reason?: string;
}

/** `cyclone repair stranded-runs` and `cyclone purge`. */
export function addMaintenance(program: Command, shell: Shell): void {
  const repair = program.command('repair').description('mend what an engine with a bug, or a manual change, has left');
  addBulk(repair.command('stranded-runs'), 'confirms that all of them are meant: a repair has no filter')
    .description(
      'find running runs that cannot go on by themselves, and with --yes --all mend them; safe on a live database',
    )
    .option('--batch <n>', 'runs to look for at a time', whole, 100)
    .addOption(reason())
    .action(
      operate<RepairFlags>(shell, async ({ operator, options }) => {
        const dryRun = !options.yes;
        const writer = new RowWriter<RepairedRun>(options.format, REPAIRED);
        const progress = new Progress('runs', undefined);
        await interruptible(shell, async (signal) => {
          const runs = await operator.repairStrandedRuns({
            batch: options.batch,
            dryRun,
            all: options.all,
            actor: actorOf(options),
            reason: options.reason,
            signal,
            onRun: (run) => {
              progress.end();
              writer.write([run]);
              progress.update(writer.written);
            },
          } as RepairOptions); // the library refuses a change that does not say --all
          progress.end();
          writer.end();
          shell.say(dryRun ? `Found ${runs} run(s) to repair.` : `Repaired ${runs} run(s).`);
          if (dryRun && runs > 0) shell.say(nothingChanged(true));
        });
      }),
    );
  addBulk(program.command('purge'), 'without an age: confirms that whatever the retention of its steps allows is meant')
    .description(
      'count runs that are over, older than --older-than or than the retention of their steps, and with --yes delete them',
    )
    .option('--older-than <duration>', 'finished longer ago, such as 30d (default: what their steps say)', duration)
    .option('--default-age <duration>', 'the retention of steps that have none of their own', duration)
    .option('--limit <n>', 'runs to delete at most (default: all)', whole)
    .addOption(reason())
    .action(
      operate<PurgeFlags>(shell, async ({ operator, options }) => {
        const progress = new Progress('runs', options.limit);
        let last: PurgeProgress = { runs: 0, steps: 0, blocked: [] };
        await interruptible(shell, async (signal) => {
          await operator.purgeTerminalRuns({
            olderThan: options.olderThan,
            defaultAge: options.defaultAge,
            limit: options.limit,
            dryRun: !options.yes,
            all: options.all,
            actor: actorOf(options),
            reason: options.reason,
            signal,
            onProgress: (now) => {
              last = now;
              progress.update(now.runs);
            },
          } as PurgeOptions); // the library refuses a change without an age that does not say --all
        });
        progress.end();
        const { runs, steps, blocked } = last;
        writeFields(options.format, { runs, steps, blocked: blocked.length }, { json: last });
        const isEverything = options.olderThan === undefined && options.defaultAge === undefined;
        if (!options.yes) shell.say(nothingChanged(isEverything));
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
