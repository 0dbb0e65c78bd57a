import type { DepFailurePolicy, ErrorKind, RunState, StepState } from '#cyclone/model/states.js';

/** How long the model's workers lease a step. */
export const LEASE_MS = 30_000;

/** The largest input that the model's database makes of outputs, in bytes of JSON: small, so that tests come across it. */
export const MAX_INPUT_BYTES = 2000;

/** The delay of the first backoff; each further one is twice as long. */
export const BACKOFF_MS = 1000;

/** The node types of the model: those that the database knows and that a run can hold by itself. */
export type ModelNodeType = 'step' | 'action' | 'timer' | 'signal' | 'child';

/** A node as it is submitted. */
export interface NodePlan {
  readonly name: string;
  readonly type: ModelNodeType;
  readonly after: readonly string[];
  /** Whether its input is made of the outputs of `after`. */
  readonly gathers: boolean;
  /** Whether its output is too large to be gathered. */
  readonly large: boolean;
  readonly onDepFailure: DepFailurePolicy;
  readonly maxAttempts: number;
  readonly timeoutMs: number | null;
  readonly waitMs: number;
  readonly priority: number;
}

/** A run as it is submitted. */
export interface RunPlan {
  readonly nodes: readonly NodePlan[];
  readonly deadlineMs: number | null;
  readonly delayMs: number;
}

/** What the model knows of a step. All times are milliseconds since 1970, on the engine's clock. */
export interface ModelStep {
  readonly runId: string;
  readonly plan: NodePlan;
  state: StepState | 'new';
  attempt: number;
  maxAttempts: number;
  reclaims: number;
  generation: number;
  owner: string | null;
  leaseExpiry: number | null;
  startedAt: number | null;
  scheduledAt: number;
  wakeAt: number | null;
  waitLeft: number | null;
  errorKind: ErrorKind | null;
  contained: boolean | null;
}

/** What the model knows of a run. */
export interface ModelRun {
  readonly id: string;
  readonly plan: RunPlan;
  state: RunState | 'new';
  deadlineAt: number | null;
  deadlineLeft: number | null;
  readonly steps: Record<string, ModelStep>;
}

/** The row of an execution that did not complete its step. */
export interface ModelAttempt {
  readonly runId: string;
  readonly node: string;
  readonly generation: number;
  readonly attempt: number;
  readonly outcome: string;
}

/** An execution as its worker holds it. */
export interface Lease {
  readonly runId: string;
  readonly node: string;
  readonly generation: number;
  readonly owner: string;
}

export const leaseKey = (lease: { runId: string; node: string; generation: number }) =>
  `${lease.runId}/${lease.node}/${lease.generation}`;

export const isOpen = (step: ModelStep) => !['completed', 'discarded', 'cancelled'].includes(step.state);

export const isLive = (run: ModelRun) => run.state === 'running' || run.state === 'paused';

/** The nodes before a step, those behind it, and what is open before it. */
export const upstream = (run: ModelRun, step: ModelStep): ModelStep[] =>
  step.plan.after.map((name) => run.steps[name]!);

export const openDeps = (run: ModelRun, step: ModelStep): number =>
  upstream(run, step).filter((before) => before.state !== 'completed').length;

/** Everything behind a step, transitively. */
export function downstream(run: ModelRun, step: ModelStep): ModelStep[] {
  const reached = new Set([step]);
  // Nodes are listed after all that they depend on, so one pass reaches everything.
  for (const next of Object.values(run.steps))
    if (upstream(run, next).some((before) => reached.has(before))) reached.add(next);
  reached.delete(step);
  return [...reached];
}
