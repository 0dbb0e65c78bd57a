import { Module, type DynamicModule } from '@nestjs/common';
import { InvalidOptionError } from '../model/errors/setup-errors.js';
import { CycloneLifecycleModule } from './cyclone-lifecycle.module.js';
import { CycloneSharedModule } from './cyclone-shared.module.js';
import { ConfigurableModuleClass, type ASYNC_OPTIONS_TYPE, type OPTIONS_TYPE } from './cyclone.module-definition.js';
import { createProviders, exportsOf } from './cyclone.providers.js';

/**
 * Cyclone in a Nest application. Import it once, in the root module: it is global, and finds handlers and workflows among the
 * providers of all modules. The start refuses with everything that is wrong at once (R22).
 */
@Module({})
export class CycloneModule extends ConfigurableModuleClass {
  /** Options at hand. */
  static override forRoot(options: typeof OPTIONS_TYPE = {}): DynamicModule {
    return complete(super.forRoot(options), options.name);
  }

  /** Options that a factory makes; `name`, where there is one, stands beside the factory. */
  static override forRootAsync(options: typeof ASYNC_OPTIONS_TYPE): DynamicModule {
    return complete(super.forRootAsync(options), options.name);
  }
}

function complete(definition: DynamicModule, name: string | undefined): DynamicModule {
  if (name !== undefined && (typeof name !== 'string' || name === '')) {
    throw new InvalidOptionError('name', 'must be a text that is not empty.');
  }
  return {
    ...definition,
    global: true,
    imports: [...(definition.imports ?? []), CycloneSharedModule, CycloneLifecycleModule.forPool(name)],
    providers: [...(definition.providers ?? []), ...createProviders(name)],
    exports: exportsOf(name),
  };
}
