import { Module } from '@nestjs/common';
import { DiscoveryModule, ModulesContainer } from '@nestjs/core';
import { SchedulerRegistry } from '@nestjs/schedule';
import { CycloneNames } from './cyclone-names.js';
import { findProvider } from './find-provider.js';

/** What all Cyclones of one application share. A static module, so there is one in each application. */
@Module({
  imports: [DiscoveryModule],
  providers: [
    CycloneNames,
    {
      // The registry of the application's ScheduleModule; without one, a registry that shows the timers of Cyclone alone. To import
      // ScheduleModule.forRoot() here would run every @Cron() of an application twice that imports it as well.
      provide: SchedulerRegistry,
      useFactory: async (modules: ModulesContainer) =>
        (await findProvider(modules, SchedulerRegistry, CycloneSharedModule)) ?? new SchedulerRegistry(),
      inject: [ModulesContainer],
    },
  ],
  exports: [DiscoveryModule, CycloneNames, SchedulerRegistry],
})
export class CycloneSharedModule {}
