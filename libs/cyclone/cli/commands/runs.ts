import type { Command } from 'commander';
import type { Duration } from '#cyclone/model/duration.js';
import type { RunState } from '#cyclone/model/states.js';
import type { RunRecord } from '#cyclone/store/run-store.js';
import { UsageError } from '../command-line.js';
import { operate, type Shell } from '../shell.js';
import { writePages } from '../output/pages.js';
import { RowWriter, time, writeFields, type Listing } from '../output/rows.js';
import { duration, several, since, tag, whole } from '../values.js';

interface RunsOptions {
  readonly state?: string[];
  readonly workflow?: string[];
  readonly tag?: Record<string, string>;
  readonly key?: string;
  readonly parent?: string;
  readonly since?: Duration;
  readonly limit: number;
  readonly cursor?: string;
  readonly oldest?: boolean;
}

const PAGE = 500;
const MAX_LIMIT = 1_000_000;

/** `cyclone runs list` and `runs get`. */
export function addRuns(program: Command, shell: Shell): void {
  const runs = program.command('runs').description('look at runs');
  runs
    .command('list')
    .description('list runs, the newest first')
    .option('--state <states>', 'running, paused, completed, failed, cancelled; several with commas', several)
    .option('--workflow <names>', 'of these workflows', several)
    .option('--tag <key=value>', 'with this tag; again for more', tag)
    .option('--key <key>', 'with this key of submitOnce')
    .option('--parent <run>', 'child runs of this run')
    .option('--since <duration>', 'submitted no longer ago, such as 24h', duration)
    .option('--oldest', 'the oldest first')
    .option('--limit <n>', 'runs to list at most', whole, 50)
    .option('--cursor <cursor>', 'go on where another list stopped')
    .action(
      operate<RunsOptions>(shell, async ({ operator, options }) => {
        const { limit, cursor } = options;
        if (limit < 1 || limit > MAX_LIMIT) throw new UsageError(`--limit must be from 1 to ${MAX_LIMIT}.`);
        const filter = {
          ...(options.state === undefined ? {} : { states: options.state as RunState[] }),
          ...(options.workflow === undefined ? {} : { workflows: options.workflow }),
          ...(options.tag === undefined ? {} : { tags: options.tag }),
          ...(options.key === undefined ? {} : { onceKey: options.key }),
          ...(options.parent === undefined ? {} : { parent: options.parent }),
          ...since(options.since),
          direction: options.oldest ? 'asc' : 'desc',
        } as const;
        const writer = new RowWriter<RunRecord>(options.format, RUNS);
        const next = await writePages(writer, { limit, size: PAGE, cursor }, async (page) => {
          const { runs: rows, next: left } = await operator.runs({ ...filter, ...page });
          return { rows, next: left };
        });
        writer.end();
        if (writer.written === 0) shell.say('No runs.');
        // A time that is counted from now is another filter at the next call.
        if (next !== null && options.since === undefined) shell.say(`There are more: --cursor ${next}`);
        else if (next !== null) shell.say('There are more: raise --limit.');
      }),
    );
  runs
    .command('get <run>')
    .description('show one run')
    .action(
      operate<object, [string]>(shell, async ({ operator, options }, id) => {
        const run = await operator.run(id);
        const fields = Object.entries(run).map(([name, value]) => [name, name.endsWith('At') ? time(value) : value]);
        writeFields(options.format, Object.fromEntries(fields) as Record<string, unknown>, { json: run, id: run.id });
      }),
    );
}

const RUNS: Listing<RunRecord> = {
  columns: [
    { title: 'RUN', value: ({ id }) => id },
    { title: 'STATE', value: ({ state }) => state },
    { title: 'OPEN', value: ({ openSteps }) => openSteps },
    { title: 'CREATED', value: ({ createdAt }) => time(createdAt) },
    { title: 'FINISHED', value: ({ finishedAt }) => time(finishedAt) },
    { title: 'PARENT', value: ({ parentRunId }) => parentRunId },
    { title: 'KEY', value: ({ onceKey }) => onceKey },
    { title: 'WORKFLOW', value: ({ workflow }) => workflow },
  ],
  id: ({ id }) => id,
};
