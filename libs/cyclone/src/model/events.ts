import type { ErrorKind } from './states.js';

/** Every event of a step (R33). */
export const STEP_EVENT_TYPES = [
  'submitted',
  'promoted',
  'waiting',
  'claimed',
  'completed',
  'retried',
  'snoozed',
  'discarded',
  'cancelled',
  'reclaimed',
  'interrupted',
  'timed_out',
  'released',
  'reopened',
  'paused',
  'resumed',
  'lease_lost',
] as const;
export type StepEventType = (typeof STEP_EVENT_TYPES)[number];

/** Every event of a run. */
export const RUN_EVENT_TYPES = [
  'run_submitted',
  'run_completed',
  'run_failed',
  'run_cancelled',
  'run_paused',
  'run_resumed',
  'run_reopened',
] as const;
export type RunEventType = (typeof RUN_EVENT_TYPES)[number];

/** A change of a step. Emitted after its commit, at most once, by the process that made it (R33). */
export interface StepEvent {
  readonly type: StepEventType;
  readonly runId: string;
  readonly node: string;
  readonly kind: string;
  readonly queue?: string;
  readonly attempt?: number;
  /** The lease generation: how often the step has been claimed. */
  readonly generation?: number;
  /** The id of the worker that made the change; none when a client or an operator did. */
  readonly worker?: string;
  readonly error?: string;
  readonly errorKind?: ErrorKind;
  /** When this process learned of the change, on its own clock. */
  readonly at: Date;
}

/** A change of a run. Emitted after its commit, at most once, by the process that made it (R33). */
export interface RunEvent {
  readonly type: RunEventType;
  readonly runId: string;
  readonly workflow?: string;
  /**
   * Of a failed run: the node whose discard failed it, one of them when its deadline elapsed. None when the run failed because of a node
   * that was discarded before, after others were retried (R25).
   */
  readonly node?: string;
  readonly error?: string;
  readonly errorKind?: ErrorKind;
  /** When this process learned of the change, on its own clock. */
  readonly at: Date;
}

/** What a hook receives. */
export type CycloneEvent = StepEvent | RunEvent;

export function isRunEvent(event: CycloneEvent): event is RunEvent {
  return event.type.startsWith('run_');
}
