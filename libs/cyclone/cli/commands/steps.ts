import type { Command } from 'commander';
import { describeReason } from '#cyclone/model/explanation.js';
import type { StepState } from '#cyclone/model/states.js';
import type { StepRecord } from '#cyclone/store/run-store.js';
import { UsageError } from '../command-line.js';
import { operate, type Shell } from '../shell.js';
import { writePages } from '../output/pages.js';
import { RowWriter, time, writeFields, type Listing } from '../output/rows.js';
import { writeTarget } from '../targets.js';
import { several, whole } from '../values.js';

interface StepsOptions {
  readonly state?: string[];
  readonly itemsOf?: string;
  readonly limit?: number;
}

const PAGE = 500;
/** Pages with inputs and outputs, which may be large. */
const PAYLOAD_PAGE = 50;

/** `cyclone steps` and `cyclone explain`: what a run consists of, and why a node of it is not running. */
export function addSteps(program: Command, shell: Shell): void {
  program
    .command('steps <run>')
    .description('list the steps of a run; --format json shows every column, inputs, outputs and panic stacks too')
    .option('--state <states>', 'only in these states; several with commas', several)
    .option('--items-of <node>', 'only the items of this fan-out node')
    .option('--limit <n>', 'steps to list at most', whole)
    .action(
      operate<StepsOptions, [string]>(shell, async ({ operator, options }, run) => {
        const { format, state, itemsOf, limit = Infinity } = options;
        if (limit < 1) throw new UsageError('--limit must be at least 1.');
        const payloads = format === 'json';
        const filter = {
          ...(state === undefined ? {} : { states: state as StepState[] }),
          ...(itemsOf === undefined ? {} : { parentNode: itemsOf }),
          payloads,
        };
        const writer = new RowWriter<StepRecord>(format, STEPS);
        const next = await writePages(writer, { limit, size: payloads ? PAYLOAD_PAGE : PAGE }, async (page) => {
          const { steps, next: left } = await operator.stepsPage(run, { ...filter, ...page });
          return { rows: steps, next: left };
        });
        writer.end();
        if (writer.written === 0) shell.say('No steps.');
        if (next !== null) shell.say('There are more: raise --limit.');
      }),
    );
  program
    .command('explain <run> <node>')
    .description('say why a node is not running, or what it is doing instead')
    .action(
      operate<object, [string, string]>(shell, async ({ operator, options }, run, node) => {
        const explanation = await operator.explain(run, node);
        const reasons = (explanation.reasons ?? []).map(describeReason);
        const { workflow, runState, kind, queue, state, attempt, maxAttempts, reclaims } = explanation;
        writeFields(
          options.format,
          {
            run: `${explanation.runId} (${workflow}, ${runState})`,
            node: explanation.node,
            kind: `${kind} in queue ${queue}`,
            state,
            attempt: `${attempt} of ${maxAttempts}`,
            reclaims,
            because: reasons,
          },
          { json: { ...explanation, because: reasons }, id: explanation.runId },
        );
      }),
    );
}

/** A running step also says how far its handler has come. */
function stateOf({ state, lease_expired, progress, progress_note }: StepRecord): string {
  const remarks = lease_expired ? ['lease expired'] : [];
  if (state === 'running' && progress != null) remarks.push(`${Math.floor(Number(progress) * 100)} %`);
  if (state === 'running' && progress_note) remarks.push(String(progress_note));
  return remarks.length === 0 ? String(state) : `${String(state)} (${remarks.join(', ')})`;
}

const STEPS: Listing<StepRecord> = {
  columns: [
    { title: 'NODE', value: ({ node }) => node },
    { title: 'TYPE', value: ({ node_type }) => node_type },
    { title: 'KIND', value: ({ kind }) => kind },
    { title: 'STATE', value: stateOf },
    { title: 'ATTEMPT', value: ({ attempt, max_attempts }) => `${String(attempt)}/${String(max_attempts)}` },
    { title: 'RECLAIMS', value: ({ reclaims }) => reclaims },
    { title: 'STARTED', value: ({ started_at }) => time(started_at) },
    { title: 'FINISHED', value: ({ finished_at }) => time(finished_at) },
    { title: 'REASON', value: ({ error_kind }) => error_kind },
    { title: 'ERROR', value: ({ error }) => error },
  ],
  id: ({ run_id, node }) => writeTarget(run_id, node),
};
