import type { Command } from 'commander';
import type { DeadLetterFilter, RetryExhaustedQuery } from '#cyclone/client/operator-client.js';
import type { Duration } from '#cyclone/model/duration.js';
import { ERROR_KINDS, type ErrorKind } from '#cyclone/model/states.js';
import type { DeadLetterGroup, ExhaustedStep } from '#cyclone/store/dead-letter-store.js';
import { UsageError } from '../command-line.js';
import { operate, type Shell } from '../shell.js';
import { interruptible } from '../interrupt.js';
import { actorOf } from '../operator.js';
import { writePages } from '../output/pages.js';
import { Progress } from '../output/progress.js';
import { RowWriter, time, type Listing } from '../output/rows.js';
import { addBulk, attempts, duration, nothingChanged, whole, type BulkFlags } from '../values.js';

interface FilterOptions {
  readonly kind?: string;
  readonly reason?: string;
  readonly fingerprint?: string;
  readonly since?: Duration;
  readonly limit?: number;
}
interface RequeueOptions extends FilterOptions, BulkFlags {
  readonly attempts?: number;
  readonly comment?: string;
}

const PAGE = 500;
const MAX_LIMIT = 1_000_000;

/** `cyclone dlq`: discarded steps, by themselves and by cause, and how to bring them back. */
export function addDeadLetters(program: Command, shell: Shell): void {
  const dlq = program.command('dlq').description('look at dead letters and bring their runs back');
  filters(dlq.command('list'))
    .description('list discarded steps, the newest first; --format ids gives the runs to retry')
    .option('--limit <n>', 'steps to list at most', whole, 100)
    .action(
      operate<FilterOptions & { readonly limit: number }>(shell, async ({ operator, options }) => {
        const { limit } = options;
        if (limit < 1 || limit > MAX_LIMIT) throw new UsageError(`--limit must be from 1 to ${MAX_LIMIT}.`);
        const filter = filterOf(options);
        const writer = new RowWriter<ExhaustedStep>(options.format, DEAD_LETTERS);
        const next = await writePages(writer, { limit, size: PAGE }, async (page) => {
          const { steps, next: left } = await operator.exhaustedPage({ ...filter, ...page });
          return { rows: steps, next: left };
        });
        writer.end();
        if (writer.written === 0) shell.say('No dead letters.');
        if (next !== null) shell.say('There are more: raise --limit.');
      }),
    );
  dlq
    .command('groups')
    .description('count dead letters by kind, reason and cause, the largest group first')
    .option('--kind <kind>', 'only of this kind')
    .option('--since <duration>', 'discarded no longer ago, such as 24h', duration)
    .action(
      operate<FilterOptions>(shell, async ({ operator, options: { format, kind, since } }) => {
        const writer = new RowWriter<DeadLetterGroup>(format, GROUPS);
        writer.write(await operator.dlqGroups({ kind, since }));
        writer.end();
        if (writer.written === 0) shell.say('No dead letters.');
      }),
    );
  addBulk(filters(dlq.command('retry')), 'confirms that a retry without any filter is meant')
    .description('with --yes, reopen the failed runs behind matching dead letters, each with all its discarded nodes')
    .option('--limit <n>', 'steps to look at, the newest first (default: all)', whole)
    .addOption(attempts())
    .option('--comment <text>', 'why; kept with the change and in the audit')
    .action(
      operate<RequeueOptions>(shell, async ({ operator, options }) => {
        const dryRun = !options.yes;
        const filter = filterOf(options);
        const isEverything = Object.values(filter).every((value) => value === undefined);
        // The library refuses a change without a filter that does not say --all.
        const query = { ...filter, limit: options.limit, all: options.all } as RetryExhaustedQuery<boolean>;
        const writer = new RowWriter<Requeued>(options.format, REQUEUED);
        await interruptible(shell, async (signal) => {
          const asked = { additionalAttempts: options.attempts, dryRun, signal };
          const watched = new Progress('runs', undefined).visible;
          const total = watched ? await operator.retryExhausted(query, { ...asked, dryRun: true }) : undefined;
          const progress = new Progress('runs', total);
          let reopened = 0;
          let skipped = 0;
          try {
            await operator.retryExhausted(query, {
              ...asked,
              actor: actorOf(options),
              reason: options.comment,
              onProgress: (now) => {
                if (now.reopened > reopened) writer.write([{ runId: now.runId, outcome: done(options) }]);
                ({ reopened, skipped } = now);
                progress.update(reopened + skipped);
              },
            });
          } finally {
            progress.end();
            writer.end();
            const verb = dryRun ? 'Would requeue' : 'Requeued';
            shell.say(`${verb} ${reopened} run(s)${skipped > 0 ? `, skipped ${skipped} that cannot be retried` : ''}.`);
            if (dryRun) shell.say(nothingChanged(isEverything));
          }
        });
      }),
    );
}

interface Requeued {
  readonly runId: string;
  readonly outcome: string;
}

const done = ({ yes }: RequeueOptions): string => (yes ? 'reopened' : 'would be reopened');

function filters(command: Command): Command {
  return command
    .option('--kind <kind>', 'only of this kind')
    .option('--reason <reason>', `only ${ERROR_KINDS.join(', ')}; retryable includes timeout`)
    .option('--fingerprint <fingerprint>', 'only of this cause, as `dlq groups` shows it')
    .option('--since <duration>', 'discarded no longer ago, such as 24h', duration);
}

function filterOf({ kind, reason, fingerprint, since }: FilterOptions): DeadLetterFilter {
  return { kind, reason: reason as ErrorKind | undefined, fingerprint, since };
}

const DEAD_LETTERS: Listing<ExhaustedStep> = {
  columns: [
    { title: 'RUN', value: ({ runId }) => runId },
    { title: 'NODE', value: ({ node }) => node },
    { title: 'KIND', value: ({ kind }) => kind },
    { title: 'REASON', value: ({ errorKind }) => errorKind },
    { title: 'ATTEMPTS', value: (step) => `${step.attempts}/${step.maxAttempts}` },
    { title: 'DISCARDED', value: ({ discardedAt }) => time(discardedAt) },
    { title: 'RUN STATE', value: ({ runState, contained }) => (contained ? `${runState} (contained)` : runState) },
    { title: 'ERROR', value: ({ error }) => error },
  ],
  id: ({ rootRunId }) => rootRunId,
};

const GROUPS: Listing<DeadLetterGroup> = {
  columns: [
    { title: 'KIND', value: ({ kind }) => kind },
    { title: 'REASON', value: ({ errorKind }) => errorKind },
    { title: 'STEPS', value: ({ steps, capped }) => (capped ? `${steps}+` : steps) },
    { title: 'RUNS', value: ({ runs, capped }) => (capped ? `${runs}+` : runs) },
    { title: 'OLDEST', value: ({ oldest }) => time(oldest) },
    { title: 'NEWEST', value: ({ newest }) => time(newest) },
    { title: 'FINGERPRINT', value: ({ fingerprint }) => fingerprint },
    { title: 'EXAMPLE', value: ({ example }) => `${example.runId} ${example.node}` },
    { title: 'ERROR', value: ({ example }) => example.error },
  ],
};

const REQUEUED: Listing<Requeued> = {
  columns: [
    { title: 'RUN', value: ({ runId }) => runId },
    { title: 'OUTCOME', value: ({ outcome }) => outcome },
  ],
  id: ({ runId }) => runId,
};
