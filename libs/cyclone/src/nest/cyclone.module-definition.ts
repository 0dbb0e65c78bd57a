import { ConfigurableModuleBuilder } from '@nestjs/common';
import type { CycloneOptions, CycloneOptionsFactory } from './cyclone-options.js';

/** The name stands beside a factory, not in what it makes: the tokens of the module are made of it. */
export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN, OPTIONS_TYPE, ASYNC_OPTIONS_TYPE } =
  new ConfigurableModuleBuilder<CycloneOptions>({ moduleName: 'Cyclone' })
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createCycloneOptions' satisfies keyof CycloneOptionsFactory)
    .setExtras<{ name?: string }>({ name: undefined })
    .build();
