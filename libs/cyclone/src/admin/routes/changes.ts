import type { ActOptions, RepairedRun, RepairOptions, RetryExhaustedQuery } from '../../client/operator-client.js';
import { parsePositiveDuration } from '../../model/duration.js';
import type { Permission } from '../permissions.js';
import { runJson } from '../answers/run.js';
import { snake } from '../json.js';
import { flag, idText, integer, listOf, object, oneOf, ref, text } from '../schema.js';
import { route, type AnyRoute, type Call } from '../route.js';
import { deadLetterFilter } from './dead-letters.js';
import { ChangeBody, PurgeBody, RepairBody, RetryBody, RetryDeadLettersBody } from './dto.js';

const ONE_RUN = object({ run: { ...ref('Run'), description: 'As it is after the change.' } });
const STOPPED = { ...flag, description: 'The time ran out, and there may be more: send the request again.' };

/** A change of one run, answered with the run as it is then. */
function change<B extends ChangeBody>(
  name: string,
  path: string,
  permission: Permission,
  summary: string,
  body: new () => B,
  act: (call: Call<object, B>, note: ActOptions) => Promise<void>,
): AnyRoute {
  return route<object, B>({
    name,
    method: 'POST',
    path,
    permission,
    summary,
    body,
    answer: ONE_RUN,
    async handle(call) {
      await act(call, noteOf(call));
      return { run: runJson(await call.reader.run(call.id)) };
    },
  });
}

export const changeRoutes: AnyRoute[] = [
  change(
    'cancelRun',
    '/runs/:id/cancel',
    'run:cancel',
    'Cancels a run with everything open in it.',
    ChangeBody,
    ({ operator, id }, note) => operator.cancel(id, note),
  ),
  change(
    'pauseRun',
    '/runs/:id/pause',
    'run:pause',
    'Starts no new work of a run until it is resumed. Pausing a paused run changes nothing.',
    ChangeBody,
    ({ operator, id }, note) => operator.pause(id, note),
  ),
  change(
    'resumeRun',
    '/runs/:id/resume',
    'run:pause',
    'Lets a paused run go on.',
    ChangeBody,
    ({ operator, id }, note) => operator.resume(id, note),
  ),
  change(
    'retryRun',
    '/runs/:id/retry-all',
    'run:retry',
    'Reopens every discarded node of a failed run.',
    RetryBody,
    ({ operator, id, body }, note) => operator.retryAll(id, { ...note, additionalAttempts: body.additional_attempts }),
  ),
  change(
    'retryStep',
    '/runs/:id/steps/:node/retry',
    'run:retry',
    'Reopens one discarded node of a failed run, and the nodes that it blocked.',
    RetryBody,
    ({ operator, id, node, body }, note) =>
      operator.retry(id, node, { ...note, additionalAttempts: body.additional_attempts }),
  ),
  route<object, RetryDeadLettersBody>({
    name: 'retryDeadLetters',
    method: 'POST',
    path: '/dlq/retry',
    permission: 'run:retry',
    summary:
      'Reopens the failed runs behind matching dead letters, each in a transaction of its own, when dry_run is false.',
    body: RetryDeadLettersBody,
    answer: object({
      reopened: integer,
      skipped: { ...integer, description: 'Runs that can no longer be retried.' },
      run_ids: listOf(idText),
      dry_run: flag,
      stopped: STOPPED,
    }),
    async handle(call) {
      const { all, dry_run, limit, additional_attempts } = call.body;
      const run_ids: string[] = [];
      let skipped = 0;
      const onProgress = (progress: { reopened: number; skipped: number; runId: string }): void => {
        if (progress.skipped === skipped) run_ids.push(progress.runId);
        skipped = progress.skipped;
      };
      const { result: reopened, stopped } = await call.service.inTime((signal) =>
        call.operator.retryExhausted(
          // What a filter needs is checked there (InvalidOptionError), for every way in alike.
          { ...deadLetterFilter(call.body), limit, all } as RetryExhaustedQuery<boolean>,
          { ...noteOf(call), additionalAttempts: additional_attempts, dryRun: dry_run, signal, onProgress },
        ),
      );
      return { reopened, skipped, run_ids, dry_run, stopped };
    },
  }),
  route<object, RepairBody>({
    name: 'repairStrandedRuns',
    method: 'POST',
    path: '/health/stranded/repair',
    permission: 'repair',
    summary:
      'Mends running runs that cannot go on by themselves, each in a transaction of its own, when dry_run is false.',
    body: RepairBody,
    answer: object({
      repaired: integer,
      runs: listOf(
        object({
          run_id: idText,
          workflow: text,
          stranded: flag,
          problems: listOf(text),
          outcome: oneOf(['repaired', 'sound', 'busy', 'not_found', 'not_running', 'found']),
        }),
      ),
      dry_run: flag,
      stopped: STOPPED,
    }),
    async handle(call) {
      const { all, batch, dry_run } = call.body;
      const runs: Record<string, unknown>[] = [];
      const onRun = (run: RepairedRun): void => void runs.push(snake(run));
      const { result: repaired, stopped } = await call.service.inTime((signal) =>
        call.operator.repairStrandedRuns({
          ...noteOf(call),
          all,
          batch,
          dryRun: dry_run,
          signal,
          onRun,
        } as RepairOptions),
      );
      return { repaired, runs, dry_run, stopped };
    },
  }),
  route<object, PurgeBody>({
    name: 'purgeRuns',
    method: 'POST',
    path: '/purge',
    permission: 'purge',
    summary: 'Deletes runs that ended long ago. Only counts them unless dry_run is false.',
    body: PurgeBody,
    answer: object({
      runs: integer,
      steps: integer,
      blocked: { ...listOf(idText), description: 'Runs that a foreign key of the application refers to.' },
      dry_run: flag,
      stopped: STOPPED,
    }),
    async handle(call) {
      const { limit, dry_run } = call.body;
      const olderThan = parsePositiveDuration(call.body.older_than, 'older_than');
      let last: { steps: number; blocked: readonly string[] } = { steps: 0, blocked: [] };
      const { result: runs, stopped } = await call.service.inTime((signal) =>
        call.operator.purgeTerminalRuns({
          ...noteOf(call),
          olderThan,
          limit,
          dryRun: dry_run,
          signal,
          onProgress: (progress) => (last = progress),
        }),
      );
      return { runs, steps: last.steps, blocked: last.blocked, dry_run, stopped };
    },
  }),
];

/** Who and why, for the audit. */
function noteOf({ caller, body: { reason } }: Call<object, ChangeBody>): ActOptions {
  return { actor: caller.actor, ...(reason === undefined ? {} : { reason }) };
}
