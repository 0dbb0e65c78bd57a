import { InvalidGraphError } from '../model/errors/graph-errors.js';
import { checkKeys } from '../model/known-keys.js';
import type { ExecutionOptions } from '../model/options.js';
import { DEP_FAILURE_POLICIES } from '../model/states.js';
import { checkKind, checkNodeName } from './check.js';
import { compileInput } from './compile-input.js';
import { metadataOf, type Node } from './handle.js';
import type { HandlerMetadata } from './metadata.js';
import type { NodeExecution, PlanContext } from './plan-context.js';
import type { PlanNode, RunPlan } from './plan.js';

/** Most edges of one graph. */
export const MAX_EDGES = 100_000;

/** Options of one node; where the handler has the same option, the node's wins (R9). */
export interface NodeOptions extends NodeExecution {
  /** Its name, unique in the graph: no `[` or `]`, at most 512 bytes. @default the kind of the handler */
  readonly node?: string;
  /** The node or nodes that must complete first although this one reads nothing of them. */
  readonly after?: Node | readonly Node[];
}

const NODE_OPTIONS = [
  'node',
  'after',
  'onDepFailure',
  'retry',
  'timeout',
  'queue',
  'priority',
  'retention',
] as const satisfies readonly (keyof NodeOptions)[];

/** A node of a draft: its owner tells it from the nodes of other graphs. */
export class DraftNode implements Node {
  constructor(
    readonly node: string,
    private readonly owner: GraphDraft,
    readonly hasOutput: boolean,
  ) {
    Object.freeze(this);
  }

  belongsTo(draft: GraphDraft): boolean {
    return this.owner === draft;
  }
}

type Growing = { -readonly [K in keyof PlanNode]: PlanNode[K] };

/**
 * A graph under construction. Each node is checked and compiled when it is added, so an error points at the line that made it. A
 * node can refer to earlier nodes only, so a graph has no cycles.
 */
export class GraphDraft {
  private readonly nodes = new Map<string, Growing>();
  private readonly deps: (readonly [string, string])[] = [];
  private sealed = false;

  constructor(
    private readonly context: PlanContext,
    private readonly workflow: string,
    private readonly submit?: ExecutionOptions,
  ) {}

  /** @throws InvalidGraphError, InvalidPayloadError, PayloadTooLargeError, InvalidOptionError: nothing of the node is kept */
  add(nodeType: 'step' | 'action', handle: unknown, input: unknown, options: NodeOptions | undefined): DraftNode {
    if (this.sealed)
      throw this.error('define() has returned, its graph can no longer grow. Add every node before it returns.');
    const handler = this.handlerOf(nodeType, handle, options?.node);
    const node = options?.node ?? handler.kind;
    const problem = checkNodeName(node);
    if (problem !== undefined) throw this.error(problem, String(node));
    checkKeys(options, NODE_OPTIONS, '', `node "${node}"`);
    if (this.nodes.has(node)) {
      throw this.error('is there already. Give this one a name of its own with the option { node: … }.', node);
    }
    if (this.nodes.size >= this.context.maxNodes) {
      throw this.error(
        `is one too many: a graph has at most ${this.context.maxNodes} nodes. Split it into child runs.`,
        node,
      );
    }

    const upstream = new Set<string>();
    const compiled = compileInput(input, {
      node,
      maxBytes: this.context.maxPayloadBytes,
      use: (target) => upstream.add(this.upstreamNode(target, node, 'reads', true)),
      refuse: (reason) => this.error(reason, node),
    });
    if (options?.onDepFailure !== undefined && !DEP_FAILURE_POLICIES.includes(options.onDepFailure)) {
      throw this.error(`has an unknown onDepFailure. Use ${DEP_FAILURE_POLICIES.join(' or ')}.`, node);
    }
    if (options?.after !== undefined) {
      for (const target of [options.after].flat()) upstream.add(this.upstreamNode(target, node, 'waits for', false));
    }
    if (this.deps.length + upstream.size > MAX_EDGES) {
      throw this.error(`brings the graph over ${MAX_EDGES} edges. Split it into child runs.`, node);
    }

    const { queue, priority, maxAttempts, policyJson } = this.context.settingsOf(handler, this.submit, options, node);
    this.nodes.set(node, {
      node,
      nodeType,
      kind: handler.kind,
      queue,
      priority,
      ...compiled,
      openDeps: upstream.size,
      dependents: 0,
      maxAttempts,
      policyJson,
      handler,
    });
    for (const dependsOn of upstream) {
      this.deps.push([node, dependsOn]);
      (this.nodes.get(dependsOn) as Growing).dependents++;
    }
    return new DraftNode(node, this, nodeType === 'step');
  }

  /** Closes the graph. `result` is what `define` returned. */
  finish(result: unknown): RunPlan {
    this.sealed = true;
    if (isPromiseLike(result)) {
      result.then(undefined, () => undefined); // reported here, so it must not surface again as an unhandled rejection
      throw this.error('define() returned a promise. It must be synchronous and pure: move the waiting into a step.');
    }
    if (this.nodes.size === 0) throw this.error('The graph is empty. Add at least one node in define().');
    let resultNode: string | null = null;
    if (result !== undefined && result !== null) {
      if (!(result instanceof DraftNode)) throw this.error('define() must return a step of its graph, or nothing.');
      if (!result.belongsTo(this))
        throw this.error('is the result, but belongs to another graph. Return a node of this builder.', result.node);
      if (!result.hasOutput)
        throw this.error('is the result, but an action has no output. Return a step.', result.node);
      resultNode = result.node;
    }
    return { workflow: this.workflow, nodes: [...this.nodes.values()], deps: this.deps, resultNode };
  }

  private handlerOf(nodeType: 'step' | 'action', handle: unknown, name: string | undefined): HandlerMetadata {
    const handler = metadataOf(handle);
    if (!handler) {
      throw this.error(
        'has no handler. Decorate the method with @Step() or @Action() and take its handle from stepsOf(Class).',
        name ?? '(unnamed)',
      );
    }
    if (handler.nodeType !== nodeType) {
      const decorator = handler.nodeType === 'step' ? '@Step()' : '@Action()';
      throw this.error(
        `cannot be a ${nodeType}: ${handler.owner} is decorated with ${decorator}. Add it with builder.${handler.nodeType}().`,
        name ?? handler.kind,
      );
    }
    const problem = checkKind(handler);
    if (problem !== undefined)
      throw this.error(`has a handler, ${handler.owner}, whose name ${problem}`, name ?? handler.kind);
    return handler;
  }

  /** The name of a node that another one depends on. */
  private upstreamNode(target: unknown, node: string, verb: string, needsOutput: boolean): string {
    if (!(target instanceof DraftNode))
      throw this.error(
        `${verb} something that is no node. Pass what builder.step() or builder.action() returned.`,
        node,
      );
    if (!target.belongsTo(this))
      throw this.error(`${verb} node "${target.node}" of another graph. Use nodes of this builder only.`, node);
    if (needsOutput && !target.hasOutput) {
      throw this.error(
        `${verb} node "${target.node}", but an action has no output. Name it in \`after\`, or make it a step.`,
        node,
      );
    }
    return target.node;
  }

  private error(problem: string, node?: string): InvalidGraphError {
    const at = node === undefined ? '' : `node "${node}" `;
    return new InvalidGraphError(`Workflow ${this.workflow}: ${at}${problem}`, {
      workflow: this.workflow,
      ...(node === undefined ? {} : { node }),
    });
  }
}

function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
