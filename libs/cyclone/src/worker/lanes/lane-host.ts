import type { EngineRow } from '../../store/engine-row.js';
import type { Engine } from '../../store/engine.js';
import type { Aftermath } from '../aftermath.js';
import type { Execution } from '../execution.js';
import type { InContext } from '../in-context.js';
import type { LeaseBook } from '../leases/lease-book.js';
import type { Slots } from '../slots.js';
import type { ProblemLog } from '../worker-logger.js';
import type { CallGate } from './call-gate.js';
import type { LonelySettler } from './lonely-settler.js';

/** What the lanes of a worker share, and whom they tell what the database answered. */
export interface LaneHost {
  readonly engine: Engine;
  readonly owner: string;
  /** Of the owner, for names of sessions. */
  readonly ownerHash: string;
  readonly leaseTtlMs: number;
  /** How often a step may be interrupted or reclaimed; null: no bound. */
  readonly maxReclaims: number | null;
  readonly kinds: readonly string[];
  readonly slots: Slots;
  readonly book: LeaseBook;
  readonly gate: CallGate;
  readonly lonely: LonelySettler;
  readonly problems: ProblemLog;
  readonly aftermath: Aftermath;
  readonly inContext: InContext;
  /** False when the worker drains. */
  readonly claiming: boolean;
  /** Executes a step that a call sent at `sentAt` (monotonic) has claimed. Its slot is taken. */
  execute(row: EngineRow, sentAt: number): void;
  /** The step has completed. */
  completed(execution: Execution): void;
  /** The execution was settled in another way; the rows of the answer say how. */
  settled(execution: Execution): void;
  /** The lease was lost before, so the outcome is dropped (R12). */
  lost(execution: Execution): void;
  /** The database refuses the completion of this step for good. */
  refuse(execution: Execution, error: unknown): void;
  /** The database refuses even the settlement for good. */
  giveUp(execution: Execution, error: unknown): void;
  /** Lets idle lanes claim, if there may be something to claim. */
  wake(): void;
}
