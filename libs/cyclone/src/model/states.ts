import type { Entity, TRANSITIONS } from './transitions.js';

type Row = (typeof TRANSITIONS)[number];
type StatesOf<E extends Entity> = Exclude<
  Extract<Row, { entity: E }>['to'] | Extract<Row, { entity: E }>['from'][number],
  'new'
>;

/** The state of a step, as in `cyclone_steps.state`. */
export type StepState = StatesOf<'step'>;

/** The state of a run, as in `cyclone_runs.state`. */
export type RunState = StatesOf<'run'>;

/** All states of a step, in the order of its life. */
export const STEP_STATES = [
  'pending',
  'available',
  'running',
  'waiting_timer',
  'waiting_signal',
  'waiting_child',
  'paused',
  'completed',
  'discarded',
  'cancelled',
] as const satisfies readonly StepState[];

/** All states of a run, in the order of its life. */
export const RUN_STATES = [
  'running',
  'paused',
  'completed',
  'failed',
  'cancelled',
] as const satisfies readonly RunState[];

/** A step in one of these has ended; only a retry of its run reopens it. */
export const TERMINAL_STEP_STATES = ['completed', 'discarded', 'cancelled'] as const satisfies readonly StepState[];

/** A run in one of these has ended. */
export const TERMINAL_RUN_STATES = ['completed', 'failed', 'cancelled'] as const satisfies readonly RunState[];

export type TerminalStepState = (typeof TERMINAL_STEP_STATES)[number];
export type TerminalRunState = (typeof TERMINAL_RUN_STATES)[number];

/** What a node is (R2), as in `cyclone_steps.node_type`. */
export const NODE_TYPES = ['step', 'action', 'fan_out', 'item', 'timer', 'signal', 'child'] as const;
export type NodeType = (typeof NODE_TYPES)[number];

/** Why a step was discarded, or how its last attempt failed, as in `cyclone_steps.error_kind`. */
export const ERROR_KINDS = ['retryable', 'permanent', 'deadline', 'reclaim_limit', 'timeout'] as const;
export type ErrorKind = (typeof ERROR_KINDS)[number];

/** What a discard upstream does to a node: fail the whole run, or cancel only this branch (R23). */
export const DEP_FAILURE_POLICIES = ['fail_run', 'cancel_branch'] as const;
export type DepFailurePolicy = (typeof DEP_FAILURE_POLICIES)[number];

export function isTerminalRunState(state: RunState): state is TerminalRunState {
  return (TERMINAL_RUN_STATES as readonly string[]).includes(state);
}
