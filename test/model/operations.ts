import type { Lease } from './model-state.js';

/** What workers and operators do to runs: each is one transaction. */
export type Operation =
  /** Completes steps and claims new ones for the free slots. */
  | { readonly do: 'flush'; readonly owner: string; readonly done: readonly Lease[]; readonly slots: number }
  /** A completion transaction that commits, or that its handler's error rolls back. */
  | { readonly do: 'complete'; readonly lease: Lease; readonly rollback: boolean }
  | {
      readonly do: 'settle';
      readonly lease: Lease;
      readonly outcome: 'failed' | 'timed_out' | 'snoozed' | 'released' | 'interrupted';
      readonly permanent: boolean;
      /** Null: the backoff of the step decides. */
      readonly delayMs: number | null;
      /** Bounds interruptions. */
      readonly maxReclaims: number | null;
    }
  /** Without leases it renews all that its owner has. */
  | { readonly do: 'heartbeat'; readonly owner: string; readonly leases: readonly Lease[] | null }
  | { readonly do: 'sweep'; readonly maxReclaims: number | null }
  | { readonly do: 'deadlines' }
  | { readonly do: 'cancel' | 'pause' | 'resume' | 'repair'; readonly runId: string }
  /** Without a node it is retryAll. */
  | { readonly do: 'retry'; readonly runId: string; readonly node: string | null; readonly additional: number };

export type OperationOf<D extends Operation['do']> = Extract<Operation, { do: D }>;

/** What the engine answered, as far as the model wants to know it. */
export interface Told {
  readonly event: string;
  readonly runId: string;
  readonly node: string;
  readonly generation: number;
  readonly reason: string | undefined;
  readonly info: Readonly<Record<string, unknown>>;
}

export const describeOperation = (operation: Operation): string => JSON.stringify(operation);
