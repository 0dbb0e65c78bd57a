import { isOpen, isLive, openDeps } from './model-state.js';
import type { ReferenceModel } from './reference-model.js';

/** The model's runs and steps, written as `World.read` writes the tables. */
export function linesOf(model: ReferenceModel): string[] {
  return Object.values(model.runs).flatMap((run) => {
    const steps = Object.values(run.steps);
    const open = steps.filter(isOpen).length;
    const uncontained = steps.filter((step) => step.state === 'discarded' && !step.contained).length;
    return [
      `run ${run.id}: ${run.state}, ${open} open, ${uncontained} uncontained, deadline ${run.deadlineAt ?? '-'}`,
      ...steps.map((step) =>
        [
          `step ${run.id}/${step.plan.name}: ${step.state}`,
          `attempt ${step.attempt} of ${step.maxAttempts}`,
          `${step.reclaims} reclaims`,
          `generation ${step.generation}`,
          `open ${isOpen(step) ? openDeps(run, step) : '-'}`,
          `owner ${step.owner ?? '-'} until ${step.leaseExpiry ?? '-'}`,
          `scheduled ${step.scheduledAt}`,
          `wakes ${step.state.startsWith('waiting') ? step.wakeAt : '-'}`,
          `error ${step.errorKind ?? '-'}`,
          `contained ${step.contained ?? '-'}`,
        ].join(', '),
      ),
    ];
  });
}

export const attemptLinesOf = (model: ReferenceModel): string[] =>
  model.attempts.map((row) => `${row.runId}/${row.node}/${row.generation}: attempt ${row.attempt} ${row.outcome}`);

/**
 * The states that each run and step went through (I11), as `World.paths` reads them. The engine may reopen a node by way of pending where
 * its input has to be made first; the table has the one step.
 */
export function pathLinesOf(model: ReferenceModel): string[] {
  return Object.entries(model.paths).map(([key, states]) => pathLine(key, states));
}

export function pathLine(key: string, states: readonly string[]): string {
  const path = states.join(' > ').replaceAll('pending > running', 'pending > available > running');
  return `${key}: ${path.replaceAll(/(discarded|cancelled) > pending > (available|waiting_\w+)/g, '$1 > $2')}`;
}

/** What one list of lines has and the other has not. */
export function differences(real: readonly string[], expected: readonly string[]): string[] {
  const [a, b] = [new Set(real), new Set(expected)];
  return [
    ...real.filter((line) => !b.has(line)).map((line) => `is:        ${line}`),
    ...expected.filter((line) => !a.has(line)).map((line) => `should be: ${line}`),
  ].toSorted((x, y) => x.slice(11).localeCompare(y.slice(11)));
}

/** What the numbers of the model itself say of each step (I4, I9). */
export function accountsOf(model: ReferenceModel): string[] {
  const wrong: string[] = [];
  for (const run of Object.values(model.runs)) {
    if (isLive(run)) wrong.push(`run ${run.id} is ${run.state}`);
    for (const step of Object.values(run.steps)) {
      const key = `${run.id}/${step.plan.name}`;
      const rows = model.attempts.filter((row) => `${row.runId}/${row.node}` === key);
      const failures = rows.filter(({ outcome }) => outcome === 'retried' || outcome === 'timed_out').length;
      const expected = 1 + failures + (model.charged[key] ?? 0);
      if (step.attempt !== expected) wrong.push(`${key}: attempt ${step.attempt}, by its history ${expected}`);
      const ended = rows.length + (step.state === 'completed' && step.generation > 0 ? 1 : 0);
      if (step.generation !== ended) wrong.push(`${key}: ${step.generation} executions began, ${ended} ended`);
    }
  }
  return wrong;
}
