import type { NumericBackoff } from '../model/backoff.js';
import type { NodeType } from '../model/states.js';
import type { HandlerMetadata } from './metadata.js';

/** A node as the database takes it. */
export interface PlanNode {
  readonly node: string;
  readonly nodeType: NodeType;
  readonly kind: string;
  readonly queue: string;
  readonly priority: number;
  /** JSON text of the input when it is known at submit, else null. */
  readonly inputJson: string | null;
  /**
   * JSON text of how the database makes the input of upstream outputs, else null (R4): `{"f": node}` an output, `{"f": node, "k":
   * [key, …]}` what lies below these keys of it, `{"o": {…}}` an object, `{"a": […]}` a list, `{"l": value}` a literal.
   */
  readonly inputSpec: string | null;
  /** Upstream nodes. */
  readonly openDeps: number;
  /** Downstream nodes. */
  readonly dependents: number;
  readonly maxAttempts: number;
  /** JSON text of a NodePolicy; null when all of it is default. */
  readonly policyJson: string | null;
  /** The handler, for the validation of its input (R37). */
  readonly handler: HandlerMetadata;
}

/** The parts of a node's policy that are stored together; what is default is left out. */
export interface NodePolicy {
  readonly onDepFailure?: 'cancel_branch';
  readonly backoff?: NumericBackoff;
  readonly timeoutMs?: number;
  readonly retentionMs?: number;
}

/** A checked graph, ready for the database: plain data. */
export interface RunPlan {
  /** The name of the workflow; the kind, of a standalone job. */
  readonly workflow: string;
  readonly nodes: readonly PlanNode[];
  /** Edges without duplicates. */
  readonly deps: readonly (readonly [node: string, dependsOn: string])[];
  /** The node whose output is the result of the run. */
  readonly resultNode: string | null;
}
