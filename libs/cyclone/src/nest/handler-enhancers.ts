import { ExternalContextCreator, type ContextId } from '@nestjs/core';

/** The type of the execution context that guards, interceptors and filters of a handler see: `context.getType() === 'cyclone'`. */
export const CYCLONE_CONTEXT = 'cyclone';

/** How Nest marks methods and classes; what it exports them as differs between its versions. */
const GUARDS = '__guards__';
const INTERCEPTORS = '__interceptors__';
const FILTERS = '__exceptionFilters__';
const PIPES = '__pipes__';

type Method = (...args: unknown[]) => unknown;

/** In which scope a handler's enhancers are looked up. */
export interface EnhancerScope {
  readonly contextId: ContextId;
  readonly inquirerId: string;
}

/** Whether a method itself is decorated with `@UsePipes()`. */
export function hasPipes(method: unknown): boolean {
  return typeof method === 'function' && Reflect.hasMetadata(PIPES, method);
}

/**
 * Guards, interceptors and exception filters that stand on a handler or on its class. Those of the whole application are left out:
 * they are written for requests, and would fail every step.
 */
export class HandlerEnhancers {
  private readonly creator: ExternalContextCreator;

  constructor(creator: ExternalContextCreator) {
    const { container } = creator as unknown as { readonly container: object };
    // Enhancers of the whole application come from its configuration; a container without one knows none.
    const bare = Object.create(container, { applicationConfig: { value: undefined } }) as never;
    this.creator = ExternalContextCreator.fromContainer(bare);
  }

  /** The method with its enhancers around it; undefined when it has none, so that the usual handler is called directly. */
  wrap(instance: object, key: string | symbol, scope?: EnhancerScope): ((...args: unknown[]) => unknown) | undefined {
    const method = (instance as Record<string | symbol, Method>)[key] as Method;
    const has = (mark: string): boolean =>
      Reflect.hasMetadata(mark, method) || Reflect.hasMetadata(mark, instance.constructor);
    const options = { guards: has(GUARDS), interceptors: has(INTERCEPTORS), filters: has(FILTERS) };
    if (!options.guards && !options.interceptors && !options.filters) return undefined;
    return this.creator.create(
      instance as never,
      method,
      key as string,
      undefined,
      undefined,
      scope?.contextId,
      scope?.inquirerId,
      options,
      CYCLONE_CONTEXT,
    );
  }
}
