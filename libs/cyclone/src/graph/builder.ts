import { GraphDraft, type NodeOptions } from './draft.js';
import type { ActionHandle, Node, StepHandle, StepNode } from './handle.js';
import type { Input } from './inputs.js';
import { PlanContext } from './plan-context.js';
import type { StoredOutput } from './stored.js';

export type { NodeOptions };

/** Takes the nodes of a graph in `define`. Each node may depend on nodes that were added before it. */
export class WorkflowBuilder {
  /** The engine makes builders; without arguments one serves to test a `define` by itself. */
  constructor(private readonly draft = new GraphDraft(new PlanContext(), '(unnamed)')) {}

  /**
   * Adds a step, whose output can be read with `from`.
   * @throws InvalidGraphError, InvalidPayloadError, PayloadTooLargeError, InvalidOptionError, each naming the node (R3)
   */
  step<I, O>(handle: StepHandle<I, O>, input: Input<NoInfer<I>>, options?: NodeOptions): StepNode<StoredOutput<O>> {
    return this.draft.add('step', handle, input, options) as Node as StepNode<StoredOutput<O>>;
  }

  /**
   * Adds an action, which has no output.
   * @throws InvalidGraphError, InvalidPayloadError, PayloadTooLargeError, InvalidOptionError, each naming the node (R3)
   */
  action<I>(handle: ActionHandle<I>, input: Input<NoInfer<I>>, options?: NodeOptions): Node {
    return this.draft.add('action', handle, input, options);
  }
}
