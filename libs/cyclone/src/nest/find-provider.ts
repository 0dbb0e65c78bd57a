import { Inject, Injectable, type InjectionToken } from '@nestjs/common';
import { ModuleRef, type ModulesContainer } from '@nestjs/core';

/**
 * What some module of the application provides under a token, once it is ready; undefined when none does. Injection waits for
 * providers that are made asynchronously, as a DataSource is; `ModuleRef.get` does not.
 * @param except a module that does not count
 */
export async function findProvider<T>(
  modules: ModulesContainer,
  token: InjectionToken,
  except?: unknown,
): Promise<T | undefined> {
  for (const { metatype, providers } of modules.values()) {
    if (metatype === except || !providers.has(token)) continue;
    @Injectable()
    class Holder {
      @Inject(token) readonly value!: T;
    }
    const moduleRef = providers.get(ModuleRef)?.instance as ModuleRef;
    return (await moduleRef.create(Holder)).value;
  }
  return undefined;
}
