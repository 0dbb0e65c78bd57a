import { Logger } from '@nestjs/common';
import { OperatorClient } from '../client/operator-client.js';
import { onConnection } from '../client/transient.js';
import type { PayloadPlace } from '../model/payload-codec.js';
import { startTimer } from '../model/timer.js';
import { AdminStore } from '../store/admin-store.js';
import { BoundedConnections } from '../store/bounded-connections.js';
import { Engine } from '../store/engine.js';
import type { Session } from '../store/session.js';
import type { ResolvedAdminOptions } from './admin-options.js';
import { jsonOf } from './json.js';

/** The server ends a statement of a read after so long. */
const READ_TIMEOUT_MS = 5_000;
/** Work on many runs stops between two of them after so long, because nobody waits for an answer for ever. */
const BULK_TIME_MS = 25_000;

/** What the routes work with: one Cyclone, for reading with a limit and for changing. */
export class AdminService {
  readonly store: AdminStore;
  readonly reader: OperatorClient;
  readonly doctor: OperatorClient;
  readonly schema: string;
  private readonly logger = new Logger('Cyclone admin');
  private readonly connections: BoundedConnections;

  constructor(
    readonly engine: Engine,
    readonly operator: OperatorClient,
    readonly options: ResolvedAdminOptions,
  ) {
    this.schema = engine.schema;
    this.store = new AdminStore(engine.schema);
    this.connections = new BoundedConnections(engine.connections, READ_TIMEOUT_MS, 'transaction');
    this.reader = this.readerOn(this.connections);
    // The doctor goes on after a check that failed, which a transaction would not.
    this.doctor = this.readerOn(new BoundedConnections(engine.connections, READ_TIMEOUT_MS, 'session'));
  }

  /** Reads in a transaction whose statements end after 5 s. */
  read<T>(what: string, work: (session: Session) => Promise<T>): Promise<T> {
    return onConnection(this.connections, `reading of ${what}`, work);
  }

  /** What may be shown of a payload; undefined when the hook failed. */
  async redacted(value: unknown, place: PayloadPlace): Promise<{ readonly value: unknown } | undefined> {
    const { redact } = this.options;
    if (!redact) return { value };
    try {
      return { value: jsonOf(await redact(value, place)) };
    } catch (error) {
      // Neither the payload nor what the hook said about it goes anywhere.
      this.logger.error(
        `The redact hook failed for the ${place.part} of node "${place.node}" of run ${place.runId} with ${nameOf(error)}; nothing of it was shown.`,
      );
      return undefined;
    }
  }

  /** Gives bulk work a signal that stops it in time, and says whether it came to that. */
  async inTime<T>(
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<{ readonly result: T; readonly stopped: boolean }> {
    const controller = new AbortController();
    const timer = startTimer(BULK_TIME_MS, () => controller.abort(), { unref: true });
    try {
      const result = await work(controller.signal);
      return { result, stopped: controller.signal.aborted };
    } finally {
      timer.cancel();
    }
  }

  private readerOn(connections: BoundedConnections): OperatorClient {
    const engine = new Engine(connections, this.engine.schema, (what, error) =>
      this.logger.warn(`${what}: ${nameOf(error)}`),
    );
    return new OperatorClient(engine, this.logger);
  }
}

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : typeof error);
