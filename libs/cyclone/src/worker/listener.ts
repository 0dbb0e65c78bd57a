import { startTimer, type Timer } from '../model/timer.js';
import type { Engine } from '../store/engine.js';
import { channelOf } from '../store/notifier.js';
import { destroyClient, type RawClient } from '../store/raw-client.js';
import { listenOn } from '../store/session-commands.js';
import type { ProblemLog } from './worker-logger.js';

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 30_000;

/**
 * Hears what other processes tell, on a connection of its own that is never inside a transaction. A hint only: without it,
 * or behind a pooler that swallows notifications, the worker finds its work by polling.
 */
export class Listener {
  private client: RawClient | undefined;
  private retry: Timer | undefined;
  private failures = 0;
  private stopped = false;
  private connecting: Promise<void> = Promise.resolve();

  constructor(
    private readonly engine: Engine,
    private readonly problems: ProblemLog,
  ) {}

  start(): void {
    this.connecting = this.connect();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.retry?.cancel();
    await this.connecting;
    if (this.client) destroyClient(this.client);
  }

  private async connect(): Promise<void> {
    let client: RawClient | undefined;
    try {
      client = await this.engine.connections.openClient('cyclone-listen');
      if (this.stopped) {
        destroyClient(client);
        return;
      }
      client.on('notification', ({ payload }: { payload?: string }) => this.engine.notifier.receive(payload ?? ''));
      client.on('end', () => this.lost());
      await listenOn(client, channelOf(this.engine.schema));
      this.client = client;
      this.failures = 0;
    } catch (error) {
      if (!this.stopped) this.problems.report('Cannot listen for notifications; polling goes on', error);
      if (client) destroyClient(client);
      else this.lost();
    }
  }

  private lost(): void {
    this.client = undefined;
    if (this.stopped) return;
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.failures++, 10));
    this.retry?.cancel();
    this.retry = startTimer(pauseMs, () => this.start(), { unref: true });
  }
}
