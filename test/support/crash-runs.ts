import { randomUUID } from 'node:crypto';
import type { NodePolicy } from '#cyclone/graph/plan.js';
import type { NewKeyedRun, NewRun } from '#cyclone/store/submit-store.js';

/** A node of a crash test: the handler that executes it, and the nodes before it. */
export interface CrashNode {
  readonly kind: string;
  readonly after?: readonly string[];
  readonly queue?: string;
  readonly policy?: NodePolicy;
}

/** Retries come at once. */
const AT_ONCE: NodePolicy = { backoff: { baseMs: 1, factor: 1, maxMs: 1, jitter: false } };

/** A run for the handlers of test/support/crash-handlers.mjs. */
export function crashRun(nodes: Readonly<Record<string, CrashNode>>): NewRun {
  const deps = Object.entries(nodes).flatMap(([node, { after = [] }]) => after.map((on) => [node, on] as const));
  return {
    workflow: 'crash',
    resultNode: null,
    tags: null,
    delayMs: null,
    startAt: null,
    deadlineMs: null,
    nodes: Object.entries(nodes).map(([node, { kind, after = [], queue = 'default', policy = AT_ONCE }]) => ({
      node,
      nodeType: 'step',
      kind,
      queue,
      priority: 0,
      inputJson: 'null',
      inputSpec: null,
      openDeps: after.length,
      dependents: deps.filter(([, on]) => on === node).length,
      maxAttempts: 5,
      policyJson: JSON.stringify(policy),
    })),
    deps,
  };
}

export function keyed(run: NewRun, onceKey: string): NewKeyedRun {
  return { ...run, onceKey, onceHash: 'the same', onceToken: randomUUID() };
}
