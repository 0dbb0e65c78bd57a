import type { ErrorKind, NodeType, RunState, StepState } from './states.js';

interface UpstreamNode {
  readonly node: string;
  /** Missing when the run has no such node any more. */
  readonly state?: StepState;
}

/** One reason why a node is not running, or what it is doing instead; `code` tells which fields it has. Times are ISO 8601 texts. */
export type ExplanationReason =
  | { readonly code: 'completed' | 'cancelled'; readonly at: string }
  | {
      readonly code: 'discarded';
      readonly at: string;
      readonly error?: string;
      readonly errorKind?: ErrorKind;
      readonly contained?: boolean;
    }
  | {
      readonly code: 'running' | 'lease_expired';
      readonly worker: string;
      readonly since: string;
      readonly leaseExpiry: string;
      readonly liveWorkers: number;
    }
  | { readonly code: 'waits_for_connection'; readonly worker: string; readonly since: string }
  | { readonly code: 'run_paused'; readonly at: string }
  | { readonly code: 'scheduled' | 'backoff'; readonly at: string; readonly error?: string }
  | {
      readonly code: 'dependencies';
      readonly open: number;
      readonly total: number;
      readonly nodes: readonly UpstreamNode[];
    }
  | { readonly code: 'unreachable'; readonly nodes: readonly UpstreamNode[] }
  | { readonly code: 'missed_promotion' | 'due' }
  | { readonly code: 'items'; readonly open: number; readonly total: number }
  | { readonly code: 'item_concurrency'; readonly node: string; readonly limit?: number }
  | { readonly code: 'timer' | 'signal'; readonly wakeAt?: string; readonly due: boolean }
  | {
      readonly code: 'child';
      readonly wakeAt?: string;
      readonly due: boolean;
      readonly childRunId?: string;
      readonly childState?: RunState;
    }
  | { readonly code: 'no_worker'; readonly deadWorkers: number }
  | { readonly code: 'no_free_slot'; readonly slots: number; readonly running: number }
  | { readonly code: 'queued'; readonly ahead: number };

/** Why a node is not running. Everything but the first three is missing when the run has no such node. */
export interface Explanation {
  readonly runId: string;
  readonly runState: RunState;
  readonly node: string;
  readonly workflow?: string;
  readonly nodeType?: NodeType;
  readonly kind?: string;
  readonly queue?: string;
  readonly priority?: number;
  readonly state?: StepState;
  readonly attempt?: number;
  readonly maxAttempts?: number;
  readonly reclaims?: number;
  /** The most telling first. */
  readonly reasons?: readonly ExplanationReason[];
}

/** A reason as a sentence for an operator, with what to do where something can be done. */
export function describeReason(reason: ExplanationReason): string {
  switch (reason.code) {
    case 'completed':
      return `It completed at ${reason.at}.`;
    case 'cancelled':
      return `It was cancelled at ${reason.at}.`;
    case 'discarded':
      return `It was discarded at ${reason.at} (${reason.errorKind ?? 'unknown'}): ${reason.error ?? 'no error was stored'}. A retry reopens it.`;
    case 'running':
      return `It has been running on worker ${reason.worker} since ${reason.since}.`;
    case 'lease_expired':
      return `The lease of worker ${reason.worker} expired at ${reason.leaseExpiry}; ${
        reason.liveWorkers > 0 ? 'the next sweep reclaims it.' : 'no worker is alive to reclaim it: start one.'
      }`;
    case 'waits_for_connection':
      return (
        `It waits for a connection of the pool of worker ${reason.worker} for its completion transaction since ${reason.since}: ` +
        `set a larger poolSize there, or fewer slots in worker.queues.`
      );
    case 'run_paused':
      return `Its run was paused at ${reason.at}: resume it.`;
    case 'scheduled':
      return `It may not start before ${reason.at}.`;
    case 'backoff':
      return `It waits until ${reason.at} to be tried again after: ${reason.error ?? 'a failure'}`;
    case 'dependencies':
      return `It waits for ${reason.open} of ${reason.total} nodes before it: ${list(reason.nodes, reason.open)}.`;
    case 'unreachable':
      return `It can never start, because these will not complete: ${list(reason.nodes, reason.nodes.length)}. Retry or repair the run.`;
    case 'missed_promotion':
      return 'Everything before it has completed, yet it was not promoted: repair the run.';
    case 'items':
      return `It waits for ${reason.open} of its ${reason.total} items.`;
    case 'item_concurrency':
      return `Only ${reason.limit ?? 'some'} items of node "${reason.node}" may be open at a time; its place has not come free.`;
    case 'timer':
      return reason.due ? 'Its timer is due.' : `Its timer fires at ${reason.wakeAt ?? 'a time that is not set'}.`;
    case 'signal':
      return `It waits for a signal${reason.wakeAt === undefined ? '' : `, until ${reason.wakeAt}`}.`;
    case 'child':
      return reason.childRunId === undefined
        ? 'It waits for a worker that registered its workflow to start the child run.'
        : `It waits for child run ${reason.childRunId}, which is ${reason.childState ?? 'gone'}.`;
    case 'no_worker':
      return `No live worker serves its kind in its queue${
        reason.deadWorkers > 0 ? `; ${reason.deadWorkers} dead one(s) did` : ''
      }: start one that registers it.`;
    case 'no_free_slot':
      return `All ${reason.slots} slots of the workers that serve it are taken (${reason.running} running).`;
    case 'queued':
      return `Before it come ${reason.ahead} step(s) of its kind in its queue.`;
    case 'due':
      return 'It is the next of its kind; a worker will claim it at its next poll.';
  }
}

function list(nodes: readonly UpstreamNode[], total: number): string {
  const shown = nodes.slice(0, 10).map(({ node, state }) => `${node} (${state ?? 'missing'})`);
  return shown.join(', ') + (total > shown.length ? ` and ${total - shown.length} more` : '');
}
