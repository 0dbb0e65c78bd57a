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
      /** When the housekeeping of that worker last succeeded; missing when it is not known any more. */
      readonly workerSeenAt?: string;
      /** Workers that could reclaim it. */
      readonly liveWorkers: number;
      /** When any worker was seen last. */
      readonly lastSeenAt?: string;
    }
  | { readonly code: 'waits_for_connection'; readonly worker: string; readonly since: string }
  | { readonly code: 'run_paused'; readonly at: string }
  | { readonly code: 'scheduled' | 'backoff'; readonly at: string; readonly error?: string }
  | { readonly code: 'clock_set_back'; readonly was: string; readonly now: string }
  | {
      readonly code: 'dependencies';
      readonly open: number;
      readonly total: number;
      readonly nodes: readonly UpstreamNode[];
    }
  | { readonly code: 'unreachable'; readonly nodes: readonly UpstreamNode[] }
  | { readonly code: 'missed_promotion' }
  | { readonly code: 'due'; readonly workerSeenAt?: string }
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
  | {
      readonly code: 'no_worker';
      /** Workers that serve its kind in its queue: not seen for a minute, and shutting down. */
      readonly deadWorkers: number;
      readonly drainingWorkers: number;
      /** Live workers that do not serve it. */
      readonly otherWorkers: number;
      /** When the last one that serves it was seen; of any worker when none does. */
      readonly lastSeenAt?: string;
    }
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
      return `It has been running on worker ${reason.worker} since ${reason.since}${seen(', which was last seen', reason.workerSeenAt)}.`;
    case 'lease_expired':
      return `The lease of worker ${reason.worker} expired at ${reason.leaseExpiry}; ${
        reason.liveWorkers > 0
          ? 'the next sweep reclaims it.'
          : `no worker is known to live that could reclaim it${seen(' (the last one was seen', reason.lastSeenAt, ')')}: start one.`
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
    case 'clock_set_back':
      return (
        `The database's clock has been set back: it was ${reason.was}, and now it is ${reason.now}. What was due then stays due; ` +
        `a backoff, a delay or a deadline of that time ends later by as much.`
      );
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
      return describeNoWorker(reason);
    case 'no_free_slot':
      return `All ${reason.slots} slots of the workers that serve it are taken (${reason.running} running).`;
    case 'queued':
      return `Before it come ${reason.ahead} step(s) of its kind in its queue.`;
    case 'due':
      return `It is the next of its kind; a worker will claim it at its next poll${seen(' (one was last seen', reason.workerSeenAt, ')')}.`;
  }
}

function describeNoWorker(reason: Extract<ExplanationReason, { code: 'no_worker' }>): string {
  const { deadWorkers, drainingWorkers, otherWorkers, lastSeenAt } = reason;
  if (drainingWorkers > 0) {
    return `All ${drainingWorkers} worker(s) that serve its kind in its queue are shutting down: start one.`;
  }
  if (deadWorkers > 0) {
    return `No live worker serves its kind in its queue; ${deadWorkers} dead one(s) did${seen(', the last one seen', lastSeenAt)}: start one.`;
  }
  return otherWorkers > 0
    ? `None of the ${otherWorkers} live worker(s) serves its kind in its queue: start one that registers it.`
    : `No worker lives${seen(' (the last one was seen', lastSeenAt, ')')}: start one that registers its kind.`;
}

/** `before` and the time; nothing when it is not known. */
function seen(before: string, at: string | undefined, after = ''): string {
  return at === undefined ? '' : `${before} at ${at}${after}`;
}

function list(nodes: readonly UpstreamNode[], total: number): string {
  const shown = nodes.slice(0, 10).map(({ node, state }) => `${node} (${state ?? 'missing'})`);
  return shown.join(', ') + (total > shown.length ? ` and ${total - shown.length} more` : '');
}
