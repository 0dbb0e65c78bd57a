import { GraphDraft, type NodeOptions } from './draft.js';
import type { ActionHandle, Node, StepHandle, StepNode } from './handle.js';
import type { InputFor, MustTakeNoInput } from './input-signature.js';
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
   * @param input what `lit`, `from` or `join` made; may be left out, or undefined, for a handler that takes none
   * @throws InvalidGraphError, InvalidPayloadError, PayloadTooLargeError, InvalidOptionError, each naming the node (R3)
   */
  step<I, O>(handle: StepHandle<I, O> & MustTakeNoInput<I>): StepNode<StoredOutput<O>>;
  step<I, O, X = Input<I>>(
    handle: StepHandle<I, O>,
    input: InputFor<I, X>,
    options?: NodeOptions,
  ): StepNode<StoredOutput<O>>;
  step(handle: unknown, input?: unknown, options?: NodeOptions): Node {
    return this.draft.add('step', handle, input, options);
  }

  /**
   * Adds an action, which has no output.
   * @param input what `lit`, `from` or `join` made; may be left out, or undefined, for a handler that takes none
   * @throws InvalidGraphError, InvalidPayloadError, PayloadTooLargeError, InvalidOptionError, each naming the node (R3)
   */
  action<I>(handle: ActionHandle<I> & MustTakeNoInput<I>): Node;
  action<I, X = Input<I>>(handle: ActionHandle<I>, input: InputFor<I, X>, options?: NodeOptions): Node;
  action(handle: unknown, input?: unknown, options?: NodeOptions): Node {
    return this.draft.add('action', handle, input, options);
  }
}
