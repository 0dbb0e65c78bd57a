/**
 * The state machine of steps and runs as data: every change of state that the engine makes, and what triggers it (R2).
 * The state types, the guard trigger and docs/state-machine.md are made of this table. `new` is a row that is inserted.
 */
export const TRANSITIONS = [
  { entity: 'step', from: ['new'], to: 'pending', trigger: 'submit or enqueue, with upstream dependencies' },
  {
    entity: 'step',
    from: ['new'],
    to: 'available',
    trigger: 'submit or enqueue, without dependencies; an item task when its fan-out node expands',
  },
  { entity: 'step', from: ['new'], to: 'waiting_timer', trigger: 'submit, a timer node without dependencies' },
  { entity: 'step', from: ['new'], to: 'waiting_signal', trigger: 'submit, a signal node without dependencies' },
  { entity: 'step', from: ['new'], to: 'waiting_child', trigger: 'submit, a child node without dependencies' },
  { entity: 'step', from: ['new'], to: 'pending', trigger: 'an item over the concurrency of its fan-out node' },
  { entity: 'step', from: ['new'], to: 'completed', trigger: 'a fan-out node over an empty literal list' },
  {
    entity: 'step',
    from: ['pending'],
    to: 'available',
    trigger:
      "the last upstream dependency completes (in a running run); resume or repair finds it complete; an item's place in its fan-out comes free",
  },
  {
    entity: 'step',
    from: ['pending'],
    to: 'waiting_child',
    trigger: 'the last upstream dependency of a child node completes; resume or repair finds it complete',
  },
  {
    entity: 'step',
    from: ['pending'],
    to: 'waiting_timer',
    trigger: 'the last upstream dependency of a timer node completes; resume or repair finds it complete',
  },
  {
    entity: 'step',
    from: ['pending'],
    to: 'waiting_signal',
    trigger: 'the last upstream dependency of a signal node completes; resume or repair finds it complete',
  },
  {
    entity: 'step',
    from: ['pending'],
    to: 'completed',
    trigger: 'fan-out node: its last item completes, or its list is empty',
  },
  {
    entity: 'step',
    from: ['pending'],
    to: 'discarded',
    trigger:
      'fan-out node: its list is not a list or too long (permanent), or an item was discarded; any node: its resolved input is too large (permanent); deadline',
  },
  { entity: 'step', from: ['available'], to: 'running', trigger: 'a worker claims' },
  {
    entity: 'step',
    from: ['available', 'pending', 'waiting_signal', 'waiting_timer', 'waiting_child'],
    to: 'discarded',
    trigger: 'the run deadline elapsed (deadline)',
  },
  {
    entity: 'step',
    from: ['available', 'waiting_signal', 'waiting_timer', 'waiting_child'],
    to: 'paused',
    trigger: 'pause',
  },
  { entity: 'step', from: ['running'], to: 'completed', trigger: 'the handler returned' },
  {
    entity: 'step',
    from: ['running'],
    to: 'available',
    trigger: 'retryable error, attempt < maxAttempts (attempt + 1, backoff)',
  },
  {
    entity: 'step',
    from: ['running'],
    to: 'available',
    trigger: 'the lease expired, sweep reclaims (same attempt, reclaims + 1)',
  },
  { entity: 'step', from: ['running'], to: 'available', trigger: 'snooze (same attempt)' },
  { entity: 'step', from: ['running'], to: 'available', trigger: 'timed out, attempt < maxAttempts (attempt + 1)' },
  {
    entity: 'step',
    from: ['running'],
    to: 'available',
    trigger: 'released by an orderly shutdown (same attempt, reclaims unchanged)',
  },
  {
    entity: 'step',
    from: ['running'],
    to: 'available',
    trigger: 'interrupted by the database or the network (same attempt, reclaims + 1, backoff)',
  },
  { entity: 'step', from: ['running'], to: 'discarded', trigger: 'PermanentError, or attempt = maxAttempts' },
  {
    entity: 'step',
    from: ['running'],
    to: 'discarded',
    trigger: 'the lease expired after maxReclaims reclaims (reclaim_limit)',
  },
  {
    entity: 'step',
    from: ['running'],
    to: 'discarded',
    trigger: 'interrupted by the database or the network after maxReclaims reclaims (reclaim_limit)',
  },
  { entity: 'step', from: ['running'], to: 'discarded', trigger: 'the run deadline elapsed (deadline)' },
  {
    entity: 'step',
    from: ['running', 'available', 'pending', 'waiting_signal', 'waiting_timer', 'waiting_child', 'paused'],
    to: 'cancelled',
    trigger: 'fail-fast, branch cancellation, cancel, or the end of its fan-out node',
  },
  {
    entity: 'step',
    from: ['running'],
    to: 'paused',
    trigger: 'a failed or timed-out attempt, a snooze, a reclaim, an interruption or a release in a paused run',
  },
  { entity: 'step', from: ['waiting_timer'], to: 'completed', trigger: 'the time has come' },
  { entity: 'step', from: ['waiting_signal'], to: 'completed', trigger: 'a signal is in the mailbox' },
  { entity: 'step', from: ['waiting_signal'], to: 'discarded', trigger: 'maxWait elapsed (permanent)' },
  {
    entity: 'step',
    from: ['waiting_child'],
    to: 'completed',
    trigger: 'the child run completed, its result is stored',
  },
  {
    entity: 'step',
    from: ['waiting_child'],
    to: 'discarded',
    trigger:
      'the child run failed or was cancelled, or completed without a result; define threw, its graph or input was refused, the depth limit was hit; maxWait or the run deadline elapsed',
  },
  { entity: 'step', from: ['paused'], to: 'available', trigger: 'resume; the kind of the step gives the state' },
  { entity: 'step', from: ['paused'], to: 'waiting_signal', trigger: 'resume; the kind of the step gives the state' },
  { entity: 'step', from: ['paused'], to: 'waiting_timer', trigger: 'resume; the kind of the step gives the state' },
  { entity: 'step', from: ['paused'], to: 'waiting_child', trigger: 'resume; the kind of the step gives the state' },
  { entity: 'step', from: ['discarded'], to: 'available', trigger: 'retry or retryAll' },
  {
    entity: 'step',
    from: ['discarded', 'cancelled'],
    to: 'pending',
    trigger: 'retry or retryAll of a child node (it reuses its child run)',
  },
  {
    entity: 'step',
    from: ['discarded', 'cancelled'],
    to: 'pending',
    trigger: 'retry or retryAll, a dependency is not complete',
  },
  {
    entity: 'step',
    from: ['discarded', 'cancelled'],
    to: 'waiting_signal',
    trigger: 'retry or retryAll of a signal node whose dependencies are complete',
  },
  {
    entity: 'step',
    from: ['discarded', 'cancelled'],
    to: 'waiting_timer',
    trigger: 'retry or retryAll of a timer node whose dependencies are complete',
  },
  { entity: 'step', from: ['cancelled'], to: 'available', trigger: 'retry or retryAll, all dependencies are complete' },
  {
    entity: 'run',
    from: ['new'],
    to: 'running',
    trigger: 'submit or enqueue; a worker starts a child run; a schedule ticks',
  },
  {
    entity: 'run',
    from: ['running'],
    to: 'completed',
    trigger: 'all steps completed, or every discard was contained and nothing non-terminal remains',
  },
  {
    entity: 'run',
    from: ['running'],
    to: 'failed',
    trigger:
      'a step was discarded and not contained; the deadline elapsed; after a retry, nothing non-terminal is left and an uncontained discard remains',
  },
  {
    entity: 'run',
    from: ['running'],
    to: 'cancelled',
    trigger: 'cancel, or its parent node was cancelled or discarded',
  },
  { entity: 'run', from: ['failed'], to: 'running', trigger: "retry or retryAll; for a child run, its parent's retry" },
  { entity: 'run', from: ['cancelled'], to: 'running', trigger: "a child run that its parent's retry starts again" },
  { entity: 'run', from: ['running'], to: 'paused', trigger: 'pause' },
  { entity: 'run', from: ['paused'], to: 'running', trigger: 'resume' },
  {
    entity: 'run',
    from: ['paused'],
    to: 'completed',
    trigger:
      'a step running at the pause completed the last node, or was discarded, contained, and nothing non-terminal remains',
  },
  {
    entity: 'run',
    from: ['paused'],
    to: 'failed',
    trigger: 'a step running at the pause was discarded and not contained',
  },
  {
    entity: 'run',
    from: ['paused'],
    to: 'cancelled',
    trigger: 'cancel, or its parent node was cancelled or discarded',
  },
] as const satisfies readonly Transition[];

/** One row of the table. */
export interface Transition {
  readonly entity: Entity;
  readonly from: readonly string[];
  readonly to: string;
  readonly trigger: string;
}

/** What has a state. */
export type Entity = 'step' | 'run';

/**
 * Changes that one statement may make at once although the table has only their parts:
 * a flush claims a dependent in the statement that makes it available.
 */
export const COMPOSITES = [{ entity: 'step', from: 'pending', via: 'available', to: 'running' }] as const;

/** Whether the state machine has this change, alone or as a composite. `from` is `new` for an insert. For tests. */
export function isAllowed(entity: Entity, from: string, to: string): boolean {
  const rows: readonly Pick<Transition, 'entity' | 'from' | 'to'>[] = TRANSITIONS;
  return (
    rows.some((row) => row.entity === entity && row.from.includes(from) && row.to === to) ||
    COMPOSITES.some((row) => row.entity === entity && row.from === from && row.to === to)
  );
}
