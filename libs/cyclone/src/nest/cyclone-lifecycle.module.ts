import { Module, type DynamicModule, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { getWorkerPoolToken } from './cyclone.tokens.js';
import type { WorkerPool } from './worker-pool.js';

/**
 * Starts the worker after everybody's bootstrap hooks and stops it before everybody's destroy hooks, so that handlers always find the
 * application whole (C10). Nest orders hooks by the distance of a module from the root: the farthest begin at the start, the
 * nearest at the end. A global module counts as the farthest of all, wherever it is imported, hence a module of its own that
 * claims to be nearer than the root.
 */
@Module({})
export class CycloneLifecycleModule {
  static forPool(name: string | undefined): DynamicModule {
    return {
      module: CycloneLifecycleModule,
      providers: [
        {
          provide: CycloneLifecycle,
          useFactory: (pool: WorkerPool, modules: ModulesContainer) => new CycloneLifecycle(pool, modules),
          inject: [getWorkerPoolToken(name), ModulesContainer],
        },
      ],
    };
  }
}

class CycloneLifecycle implements OnApplicationBootstrap, OnModuleDestroy {
  /** @param pool a test may have put something else in its place */
  constructor(
    private readonly pool: Pick<WorkerPool, 'autoStart' | 'start'> & Partial<Pick<WorkerPool, 'close'>>,
    modules: ModulesContainer,
  ) {
    // Now: providers are made after Nest has measured the distances, and before it looks at them for the first time.
    for (const module of modules.values()) {
      if (module.metatype === CycloneLifecycleModule) module.distance = -1;
    }
  }

  async onApplicationBootstrap(): Promise<void> {
    if (this.pool.autoStart) await this.pool.start();
  }

  async onModuleDestroy(): Promise<void> {
    await this.pool.close?.();
  }
}
