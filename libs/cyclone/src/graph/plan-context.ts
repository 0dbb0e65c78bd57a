import type { Backoff, BackoffFunction } from '../model/backoff.js';
import { InvalidOptionError } from '../model/errors/setup-errors.js';
import {
  resolveHandlerOptions,
  type ExecutionOptions,
  type RetryPolicy,
  type HandlerDefaults,
  type ResolvedOptions,
} from '../model/options.js';
import { DEFAULT_MAX_PAYLOAD_BYTES } from '../model/payload.js';
import type { DepFailurePolicy } from '../model/states.js';
import type { HandlerMetadata } from './metadata.js';
import type { NodePolicy, PlanNode } from './plan.js';

/** Bounds of one submit. */
export interface PlanLimits {
  /** Most nodes of one graph. @default 10,000 */
  readonly maxNodes?: number;
  /** Largest literal input, in bytes of UTF-8 as JSON. @default 1 MiB */
  readonly maxPayloadBytes?: number;
}

/** What the module says about every graph, with what was resolved once for each handler. One for each client. */
export class PlanContext {
  readonly maxNodes: number;
  readonly maxPayloadBytes: number;
  private readonly plain = new WeakMap<HandlerMetadata, NodeSettings>();

  /** @throws InvalidOptionError for defaults or limits that make no sense */
  constructor(
    private readonly defaults: HandlerDefaults = {},
    limits: PlanLimits = {},
  ) {
    this.maxNodes = checkLimit(limits.maxNodes ?? 10_000, 'limits.maxNodes');
    this.maxPayloadBytes = checkLimit(limits.maxPayloadBytes ?? DEFAULT_MAX_PAYLOAD_BYTES, 'limits.maxPayloadBytes');
    resolveHandlerOptions(defaults, {}, [], 'defaults');
  }

  /**
   * What a node's options come to (R9). What the handler and the module decide alone is resolved once.
   * @param options of the node, which is called `node`
   * @throws InvalidOptionError naming the option, and the handler or the node
   */
  settingsOf(
    handler: HandlerMetadata,
    submit?: ExecutionOptions,
    options?: NodeExecution,
    node?: string,
  ): NodeSettings {
    const { onDepFailure = 'fail_run' } = options ?? {};
    if (!saysSomething(options) && !saysSomething(submit) && onDepFailure === 'fail_run')
      return this.plainSettings(handler);
    if (typeof options?.retry?.backoff === 'function') {
      throw new InvalidOptionError(`retry.backoff of node "${node}"`, 'must not be a function; put it on the handler.');
    }
    const subject = node === undefined ? handler.owner : `node "${node}"`;
    return settings(resolveHandlerOptions(this.defaults, handler.options, [options, submit], subject), onDepFailure);
  }

  private plainSettings(handler: HandlerMetadata): NodeSettings {
    let plain = this.plain.get(handler);
    if (!plain) {
      plain = settings(resolveHandlerOptions(this.defaults, handler.options, [], handler.owner), 'fail_run');
      this.plain.set(handler, plain);
    }
    return plain;
  }
}

/** What a node may say about its execution. */
export interface NodeExecution extends Omit<ExecutionOptions, 'retry'> {
  /** As for a handler, but without a function: a graph is data, and the worker would never see it. */
  readonly retry?: Omit<RetryPolicy, 'backoff'> & { readonly backoff?: Exclude<Backoff, BackoffFunction> };
  /** When an upstream node is discarded: fail the run, or cancel only this branch (R23). @default 'fail_run' */
  readonly onDepFailure?: DepFailurePolicy;
}

/** The options of a node in the form of a plan. */
export type NodeSettings = Pick<PlanNode, 'queue' | 'priority' | 'maxAttempts' | 'policyJson'>;

function settings(resolved: ResolvedOptions, onDepFailure: DepFailurePolicy): NodeSettings {
  const { queue, priority, maxAttempts, backoff, timeoutMs, retentionMs } = resolved;
  const policy: NodePolicy = {
    ...(onDepFailure === 'cancel_branch' && { onDepFailure }),
    ...(backoff !== null && { backoff }),
    ...(timeoutMs !== null && { timeoutMs }),
    ...(retentionMs !== null && { retentionMs }),
  };
  const policyJson = Object.keys(policy).length === 0 ? null : JSON.stringify(policy);
  return { queue, priority, maxAttempts, policyJson };
}

function saysSomething(options: ExecutionOptions | undefined): boolean {
  return (
    options !== undefined &&
    (options.queue ?? options.priority ?? options.timeout ?? options.retry ?? options.retention) !== undefined
  );
}

function checkLimit(value: number, option: string): number {
  if (!Number.isInteger(value) || value < 1)
    throw new InvalidOptionError(option, 'must be a whole number of at least 1.');
  return value;
}
