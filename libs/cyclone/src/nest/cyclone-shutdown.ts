import type { BeforeApplicationShutdown } from '@nestjs/common';
import type { WorkflowClient } from '../client/workflow-client.js';
import type { Engine } from '../store/engine.js';

/**
 * Ends what still talks to the database, after everybody's destroy hooks and before TypeORM closes its pool in
 * onApplicationShutdown. Whoever waits for a run in an open request is released, or the HTTP server could not close.
 */
export class CycloneShutdown implements BeforeApplicationShutdown {
  constructor(
    private readonly client: WorkflowClient,
    private readonly engine: Engine,
  ) {}

  async beforeApplicationShutdown(): Promise<void> {
    await this.client.close();
    await this.engine.notifier.close();
  }
}
