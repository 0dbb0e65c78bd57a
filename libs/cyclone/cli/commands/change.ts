import type { Command } from 'commander';
import type { ActOptions, OperatorClient } from '#cyclone/client/operator-client.js';
import {
  AlreadyTerminalError,
  CycloneError,
  InvalidOptionError,
  NotPausedError,
  NotRetryableError,
} from '#cyclone/model/errors/index.js';
import type { RunState } from '#cyclone/model/states.js';
import { ExitCode, UsageError } from '../command-line.js';
import { operate, type Context, type Shell } from '../shell.js';
import { interruptible } from '../interrupt.js';
import { actorOf } from '../operator.js';
import { Progress } from '../output/progress.js';
import { RowWriter, type Listing } from '../output/rows.js';
import { exitCodeOf, messageOf } from '../report.js';
import { readTargets, type Target } from '../targets.js';
import { attempts, dryRun, reason } from '../values.js';

interface ChangeOptions {
  readonly reason?: string;
  readonly dryRun?: boolean;
}
interface RetryOptions extends ChangeOptions {
  readonly all?: boolean;
  readonly attempts?: number;
}

/** What a command does to each of its runs. */
interface Change {
  /** `cancelled`, `paused`, … */
  readonly outcome: string;
  readonly apply: (operator: OperatorClient, target: Target, act: ActOptions) => Promise<void>;
  /** The error that a run in another state would cause; undefined when it can be done. */
  readonly obstacle: (runId: string, state: RunState) => Error | undefined;
}

interface Result extends Target {
  readonly outcome: string;
  readonly code?: string;
  readonly message?: string;
}

const isOpen = (state: RunState): boolean => state === 'running' || state === 'paused';
const terminal = (runId: string, state: RunState): Error | undefined =>
  isOpen(state) ? undefined : new AlreadyTerminalError(runId, state);

const CANCEL: Change = {
  outcome: 'cancelled',
  apply: (operator, { runId }, act) => operator.cancel(runId, act),
  obstacle: terminal,
};
const PAUSE: Change = {
  outcome: 'paused',
  apply: (operator, { runId }, act) => operator.pause(runId, act),
  obstacle: terminal,
};
const RESUME: Change = {
  outcome: 'resumed',
  apply: (operator, { runId }, act) => operator.resume(runId, act),
  obstacle: (runId, state) => (state === 'paused' ? undefined : new NotPausedError(runId, state)),
};
const retryOf = (additionalAttempts: number | undefined): Change => ({
  outcome: 'reopened',
  apply: (operator, { runId, node }, act) =>
    node === undefined
      ? operator.retryAll(runId, { ...act, additionalAttempts })
      : operator.retry(runId, node, { ...act, additionalAttempts }),
  obstacle: (runId, state) => (state === 'failed' ? undefined : new NotRetryableError(runId, `the run is ${state}`)),
});

/** `cyclone retry`, `cancel`, `pause` and `resume`: one transaction for each run. */
export function addChanges(program: Command, shell: Shell): void {
  program
    .command('retry <run> [node]')
    .description('reopen one discarded node of a failed run, or all of them with --all; - reads runs from stdin')
    .option('--all', 'every discarded node of the run')
    .addOption(attempts())
    .addOption(reason())
    .addOption(dryRun())
    .action(
      operate<RetryOptions, [string, string | undefined]>(shell, async (context, run, node) => {
        const { all, attempts: additional } = context.options;
        if (all && node !== undefined) throw new UsageError('Name a node, or pass --all, not both.');
        const targets = await readTargets([run]);
        const named = targets.map((target) => (node === undefined ? target : { ...target, node }));
        if (!all && named.some((target) => target.node === undefined)) {
          throw new UsageError('Name the node to retry, or pass --all for every discarded node of the run.');
        }
        await changeAll(context, all ? targets.map(({ runId }) => ({ runId })) : named, retryOf(additional));
      }),
    );
  for (const [name, description, change] of [
    ['cancel', 'cancel runs with everything open in them', CANCEL],
    ['pause', 'start no new work of runs until they are resumed; what is running goes on', PAUSE],
    ['resume', 'let paused runs go on', RESUME],
  ] as const) {
    program
      .command(`${name} <runs...>`)
      .description(`${description}; - reads runs from stdin`)
      .addOption(reason())
      .addOption(dryRun())
      .action(
        operate<ChangeOptions, [string[]]>(shell, async (context, runs) => {
          const targets = await readTargets(runs);
          await changeAll(
            context,
            targets.map(({ runId }) => ({ runId })),
            change,
          );
        }),
      );
  }
}

/** Goes through all targets; one that refuses does not keep the others, and the first refusal gives the exit code. */
async function changeAll(context: Context<ChangeOptions>, targets: readonly Target[], change: Change): Promise<void> {
  const { options, shell } = context;
  const writer = new RowWriter<Result>(options.format, RESULTS);
  const progress = new Progress('runs', targets.length);
  await interruptible(shell, async (signal) => {
    for (const [i, target] of targets.entries()) {
      if (signal.aborted) break;
      const result = await changeOne(context, target, change);
      // With one run the error says it all; a script that reads JSON wants to know which of many.
      if (result.code === undefined || options.format === 'json') writer.write([result]);
      if (targets.length > 1) progress.update(i + 1);
    }
  });
  progress.end();
  writer.end();
  if (targets.length === 0) shell.say('No runs.');
}

async function changeOne(
  { operator, options, shell }: Context<ChangeOptions>,
  target: Target,
  change: Change,
): Promise<Result> {
  try {
    if (options.dryRun) {
      const { state } = await operator.run(target.runId);
      const obstacle = change.obstacle(target.runId, state);
      if (obstacle) throw obstacle;
      return { ...target, outcome: `would be ${change.outcome}` };
    }
    await change.apply(operator, target, { actor: actorOf(options), reason: options.reason });
    return { ...target, outcome: change.outcome };
  } catch (error) {
    if (!isAboutOneRun(error)) throw error;
    shell.say(`cyclone: ${messageOf(error)}`);
    shell.fail(exitCodeOf(error));
    return { ...target, outcome: 'refused', code: error.code, message: error.message };
  }
}

function isAboutOneRun(error: unknown): error is CycloneError {
  if (InvalidOptionError.is(error)) return error.option === 'runId';
  const code = exitCodeOf(error);
  return CycloneError.is(error) && (code === ExitCode.notFound || code === ExitCode.conflict);
}

const RESULTS: Listing<Result> = {
  columns: [
    { title: 'RUN', value: ({ runId }) => runId },
    { title: 'OUTCOME', value: ({ outcome }) => outcome },
    { title: 'NODE', value: ({ node }) => node ?? '(all)' },
  ],
  id: ({ runId }) => runId,
};
