import { ContextIdFactory, ModuleRef } from '@nestjs/core';
import type { DiscoveryService } from '@nestjs/core';
import type { EnhancerScope } from './handler-enhancers.js';

/** A provider as the container holds it. */
export type ProviderWrapper = ReturnType<DiscoveryService['getProviders']>[number];

/** An instance for one execution, and where its enhancers are looked up. */
export interface ScopedInstance {
  readonly instance: object;
  readonly scope: EnhancerScope;
}

/** A provider of the application, seen as a host of decorated methods. */
export interface ProviderHost {
  /**
   * Classes to look for decorated methods, the most specific first: what the instance is, and what it is provided for. Both count:
   * a test's fake has the token's methods only, and a class that is provided for an abstract one has its own.
   */
  readonly prototypes: readonly object[];
  /** The one instance; undefined when each execution gets one of its own. */
  readonly instance: object | undefined;
  /** Makes an instance for one execution, in whose scope `request` is injectable as REQUEST. */
  readonly resolve: (request: object) => Promise<ScopedInstance>;
  /** The module that holds it, for messages. */
  readonly module: string;
}

/** The hosts among the providers of an application, each instance once. */
export function* providerHosts(wrappers: Iterable<ProviderWrapper>): Generator<ProviderHost> {
  const seen = new Set<object>();
  for (const wrapper of wrappers) {
    // An alias (`useExisting`) stands for a provider that is in the list itself.
    if (wrapper.isAlias) continue;
    const shared = wrapper.isDependencyTreeStatic() && !wrapper.isTransient;
    const instance = shared ? asObject(wrapper.instance) : undefined;
    if (shared && (!instance || seen.has(instance))) continue;
    if (instance) seen.add(instance);
    yield {
      prototypes: prototypesOf(wrapper, instance),
      instance,
      resolve: (request) => resolve(wrapper, request),
      module: wrapper.host?.name ?? 'the application',
    };
  }
}

function asObject(instance: unknown): object | undefined {
  return typeof instance === 'object' && instance !== null ? instance : undefined;
}

/** Nest keeps a factory as the metatype of a factory provider, and none for a value. */
function prototypesOf(wrapper: ProviderWrapper, instance: object | undefined): object[] {
  const own: unknown = instance
    ? Object.getPrototypeOf(instance)
    : wrapper.isNotMetatype
      ? undefined
      : prototypeOf(wrapper.metatype);
  const ofToken = prototypeOf(wrapper.token);
  return [...new Set([own, ofToken])].filter((prototype): prototype is object => asObject(prototype) !== undefined);
}

function prototypeOf(token: unknown): unknown {
  return typeof token === 'function' ? (token as { prototype?: unknown }).prototype : undefined;
}

async function resolve(wrapper: ProviderWrapper, request: object): Promise<ScopedInstance> {
  const moduleRef = wrapper.host?.providers.get(ModuleRef)?.instance as ModuleRef;
  const contextId = ContextIdFactory.create();
  moduleRef.registerRequestByContextId(request, contextId);
  const instance = await moduleRef.resolve<object>(wrapper.token as never, contextId, { strict: true });
  return { instance, scope: { contextId, inquirerId: wrapper.id } };
}
