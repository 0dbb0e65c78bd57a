import { Inject, Injectable, Logger, type InjectionToken } from '@nestjs/common';
import { ModuleRef, type ModulesContainer } from '@nestjs/core';
import { PATIENCE_MS, warnLater } from '../model/patience.js';

/** Nest sees no cycle here, because the provider is looked up and not injected. */
function warn(token: InjectionToken, module: unknown): void {
  const name = typeof token === 'function' ? token.name : String(token);
  new Logger('Cyclone').warn(
    `Cyclone has been waiting for ${name} of ${(module as { name?: string } | undefined)?.name} for ${PATIENCE_MS / 1_000} s, and so does all that injects WorkflowClient. ` +
      `If the factory that makes it (as that of TypeOrmModule.forRootAsync) injects something that needs WorkflowClient, both wait for ever: ` +
      `let that take WorkflowClient later, by ModuleRef.get in a hook. Otherwise the database does not answer yet.`,
  );
}

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
    const warning = warnLater(() => warn(token, metatype));
    try {
      return (await moduleRef.create(Holder)).value;
    } finally {
      warning.cancel();
    }
  }
  return undefined;
}
