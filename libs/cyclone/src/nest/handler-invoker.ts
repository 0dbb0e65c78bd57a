import { InputValidationError } from '../model/errors/graph-errors.js';
import { PermanentError } from '../model/errors/handler-errors.js';
import type { Type } from '../model/options.js';
import type { StepContext } from '../graph/step-context.js';
import { reviveInput } from '../client/payload-validation.js';
import type { RegisteredHandler } from '../worker/handler.js';
import type { DiscoveredHandler } from './discovery.js';
import type { HandlerEnhancers } from './handler-enhancers.js';

type Invoke = RegisteredHandler['invoke'];
type Methods = Record<string | symbol, Invoke>;

/** A handler as the worker calls it: on the right instance, within its enhancers, with its input revived and checked. */
export function toRegisteredHandler(handler: DiscoveredHandler, enhancers: HandlerEnhancers): RegisteredHandler {
  const { metadata, where, options } = handler;
  const call = handler.host.instance ? onShared(handler, enhancers) : onScoped(handler, enhancers);
  const { input: type } = metadata.options;
  const invoke: Invoke =
    type === undefined
      ? call
      : async (input, context) => call(await reviveOrDiscard(type, input, context.node), context);
  return { kind: metadata.kind, nodeType: metadata.nodeType, where, options, invoke };
}

/** The usual case: one instance, no enhancers, nothing between the worker and the method. */
function onShared({ host, key }: DiscoveredHandler, enhancers: HandlerEnhancers): Invoke {
  const instance = host.instance as Methods;
  return enhancers.wrap(instance, key) ?? ((input, context) => instance[key]?.(input, context));
}

/** A fresh instance for each execution, with the context as the REQUEST of its scope. */
function onScoped({ host, key }: DiscoveredHandler, enhancers: HandlerEnhancers): Invoke {
  return async (input, context) => {
    const { instance, scope } = await host.resolve(context);
    const wrapped = enhancers.wrap(instance, key, scope);
    return wrapped ? wrapped(input, context) : (instance as Methods)[key]?.(input, context);
  };
}

/** A computed input that the DTO class refuses will be refused each time (R37). */
async function reviveOrDiscard(type: Type, input: unknown, node: StepContext['node']): Promise<unknown> {
  try {
    return await reviveInput(type, input, `input of node "${node}"`, node);
  } catch (error) {
    if (InputValidationError.is(error)) throw new PermanentError(error.message, { cause: error });
    throw error;
  }
}
