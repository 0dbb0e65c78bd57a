import type { DataSource, QueryRunner } from 'typeorm';
import { waitForConnection, type CountedPool } from './connection-wait.js';
import { isAnswer } from './database-fault.js';
import { rawClientOf, destroyClient, type RawClient } from './raw-client.js';
import { watchLoss } from './session-loss.js';
import { isOfConnection } from './session-terms.js';
import { Session, type SessionOptions } from './session.js';

/** A pool of `pg` as TypeORM's driver holds it. */
interface DriverPool extends CountedPool {
  on(event: 'connect' | 'acquire', listener: (client: RawClient) => void): unknown;
}
interface PostgresDriver {
  readonly master?: DriverPool;
  readonly postgres?: {
    readonly Client: new (options: Record<string, unknown>) => RawClient & { connect(): Promise<unknown> };
  };
}

/** A connection outside the pool that is not there by now will not come, unless the DataSource says otherwise. */
const LONGEST_CONNECT_MS = 10_000;

const A_CALL = 'call of the engine';

/** A connection that its holder keeps for as long as it likes. */
export interface HeldSession {
  readonly session: Session;
  /** Gives it back; `broken` cuts it instead, so that nobody inherits a doubtful state. */
  release(broken?: boolean): Promise<void>;
}

export interface ConnectionsOptions extends SessionOptions {
  /** Told of what waits for a connection for longer than is good (R42): a sentence with what to do. */
  readonly onWait?: (message: string) => void;
}

/** Where sessions come from: the application's own DataSource, with its pool, its settings and its credentials. */
export class Connections {
  /** Whether a pooler has been found that gives each transaction another session of the server. */
  private shared = false;

  constructor(
    readonly dataSource: DataSource,
    private readonly given: ConnectionsOptions,
  ) {}

  get options(): ConnectionsOptions {
    return this.shared ? { ...this.given, preparedStatements: false } : this.given;
  }

  /** Whether statements are prepared by name, which takes sessions that nobody else has in between. */
  get preparedStatements(): boolean {
    return this.options.preparedStatements;
  }

  /** Whether TypeORM has taken pg-native, whose clients the engine cannot work with. */
  get isNative(): boolean {
    const { postgres } = this.driver;
    return postgres !== undefined && 'native' in new postgres.Client({});
  }

  /** From now on no session is taken for the engine's own. */
  shareSessions(): void {
    this.shared = true;
  }

  /** Whether what is notified can be heard: not through such a pooler, although it takes a LISTEN without a word. */
  get hears(): boolean {
    return !this.shared;
  }

  /** How many connections the pool may hold. */
  get poolSize(): number {
    return this.driver.master?.options.max ?? 10;
  }

  /**
   * Takes a connection out of the pool.
   * @param purpose what for, as a noun: `submit of place_order`
   * @param quiet when the caller reports a long wait itself
   * @throws NoConnectionError when the pool has none within the DataSource's connectTimeoutMS, or 30 s (R42)
   */
  async hold(purpose = A_CALL, quiet = false): Promise<HeldSession> {
    const runner = this.dataSource.createQueryRunner('master');
    const { master } = this.driver;
    protect(master);
    const client = await waitForConnection(runner, master, purpose, quiet ? undefined : this.options.onWait);
    return {
      session: new Session(client, this.options),
      release: async (broken = false) => {
        if (broken) destroyClient(client);
        await runner.release();
      },
    };
  }

  /**
   * Takes a connection that nobody has had before, for a holder who keeps it: what others may have left on theirs is not known. Those are cut,
   * and the pool makes new ones in their place.
   */
  async holdFresh(purpose = A_CALL): Promise<HeldSession> {
    for (let cut = 0; ; cut++) {
      const held = await this.hold(purpose);
      if (isFresh(held.session.client) || cut > this.poolSize) return held;
      await held.release(true);
    }
  }

  /**
   * Runs `work` on a connection of the pool. One that fails with anything but a plain SQL error is cut, and so is one that cannot write.
   * Where the connection may be at fault, and not the call, `work` runs once more, on a connection that nobody has had.
   */
  async use<T>(work: (session: Session) => Promise<T>, purpose = A_CALL): Promise<T> {
    const held = await this.hold(purpose);
    try {
      return await workOn(held, work);
    } catch (error) {
      if (!isSuspect(held.session, error)) throw error;
    }
    return workOn(await this.holdFresh(purpose), work);
  }

  /** A session on the connection of the caller's transaction. */
  async join(runner: QueryRunner): Promise<Session> {
    return this.within(await rawClientOf(runner));
  }

  /** A session on a connection that has a transaction open. */
  within(client: RawClient): Session {
    return new Session(client, this.options, false);
  }

  /**
   * Opens a connection outside the pool, with the DataSource's own settings. The caller handles its errors and ends it. Rejects when
   * there is none within `limitMs`, or else the DataSource's connectTimeoutMS, or else 10 s.
   */
  async openClient(applicationName: string, limitMs?: number): Promise<RawClient> {
    const { postgres, master } = this.driver;
    if (!postgres || !master) throw new Error('The DataSource has not been initialized.');
    const options = this.clientOptions;
    const client = new postgres.Client({
      ...options,
      connectionTimeoutMillis: limitMs ?? options['connectionTimeoutMillis'] ?? LONGEST_CONNECT_MS,
      application_name: applicationName,
    });
    watchLoss(client);
    await client.connect();
    return client;
  }

  /** The options that a connection of this DataSource is opened with. The pool hides the password from enumeration. */
  get clientOptions(): Readonly<Record<string, unknown>> {
    const options = this.driver.master?.options ?? {};
    return 'password' in options ? { ...options, password: options['password'] } : options;
  }

  private get driver(): PostgresDriver {
    return this.dataSource.driver as unknown as PostgresDriver;
  }
}

async function workOn<T>(held: HeldSession, work: (session: Session) => Promise<T>): Promise<T> {
  let broken = true;
  try {
    const result = await work(held.session);
    broken = false;
    return result;
  } catch (error) {
    broken = !isAnswer(error) || held.session.isReadOnly || isSuspect(held.session, error);
    throw error;
  } finally {
    await held.release(broken);
  }
}

/** Whether a call failed that has done nothing and may succeed on another connection than this one, which others have had before. */
function isSuspect(session: Session, error: unknown): boolean {
  return isOfConnection(error) && !session.isUsed && !isFresh(session.client);
}

const protectedPools = new WeakSet<DriverPool>();
/** How often a connection was taken out of its pool. */
const acquired = new WeakMap<RawClient, number>();

/**
 * Gives every new client of a pool a listener for errors. The pool takes its own away before TypeORM adds one, and a connection
 * that the server ends in that moment would end the process.
 */
function protect(pool: DriverPool | undefined): void {
  if (!pool || protectedPools.has(pool)) return;
  protectedPools.add(pool);
  pool.on('connect', (client) => {
    watchLoss(client);
    acquired.set(client, 0);
  });
  pool.on('acquire', (client) => {
    const times = acquired.get(client);
    if (times !== undefined) acquired.set(client, times + 1);
  });
}

/** Whether whoever has the connection now is the first. */
function isFresh(client: RawClient): boolean {
  return acquired.get(client) === 1;
}
