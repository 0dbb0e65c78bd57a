import { InvalidGraphError } from '../model/errors/graph-errors.js';
import type { ExecutionOptions } from '../model/options.js';
import { encodePayload } from '../model/payload.js';
import { WorkflowBuilder } from './builder.js';
import { checkKind, checkNodeName } from './check.js';
import { GraphDraft } from './draft.js';
import { metadataOf } from './handle.js';
import type { PlanContext } from './plan-context.js';
import type { RunPlan } from './plan.js';

const NO_DEPS: RunPlan['deps'] = [];

/**
 * Calls a workflow's `define` once and checks its graph (R3).
 * @param submit what submit says about queue and priority (R9)
 * @throws InvalidGraphError, InvalidPayloadError, PayloadTooLargeError, InvalidOptionError, and whatever `define` throws
 */
export function buildPlan(
  context: PlanContext,
  workflow: string,
  define: (builder: WorkflowBuilder) => unknown,
  submit?: ExecutionOptions,
): RunPlan {
  const draft = new GraphDraft(context, workflow, submit);
  return draft.finish(define(new WorkflowBuilder(draft)));
}

/**
 * The plan of a standalone job: a run of one node, which is called like its kind (R5).
 * @throws InvalidGraphError when the handle is none, InvalidPayloadError and PayloadTooLargeError for the input
 */
export function standalonePlan(
  context: PlanContext,
  handle: unknown,
  input: unknown,
  submit?: ExecutionOptions,
): RunPlan {
  const handler = metadataOf(handle);
  if (!handler) {
    throw new InvalidGraphError(
      'What shall be enqueued is no handle. Decorate the method with @Step() or @Action() and take its handle from stepsOf(Class).',
    );
  }
  const { kind, nodeType } = handler;
  const problem = checkNodeName(kind);
  if (problem !== undefined) throw new InvalidGraphError(`The job of ${handler.owner} ${problem}`, { node: kind });
  const unnamed = checkKind(handler);
  if (unnamed !== undefined) throw new InvalidGraphError(`The name of ${handler.owner} ${unnamed}`, { node: kind });
  const { queue, priority, maxAttempts, policyJson } = context.settingsOf(handler, submit);
  return {
    workflow: kind,
    nodes: [
      {
        node: kind,
        nodeType,
        kind,
        queue,
        priority,
        inputJson: encodePayload(input, { maxBytes: context.maxPayloadBytes, path: 'input', node: kind }),
        inputSpec: null,
        openDeps: 0,
        dependents: 0,
        maxAttempts,
        policyJson,
        handler,
      },
    ],
    deps: NO_DEPS,
    resultNode: nodeType === 'step' ? kind : null,
  };
}
