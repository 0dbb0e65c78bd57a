import type { Connections, HeldSession } from '../../store/connections.js';
import { discardPlans, keepSession } from '../../store/session-commands.js';
import { destroyClient } from '../../store/raw-client.js';
import type { Session } from '../../store/session.js';
import { LANE_PLANS, PlanFreshness } from './plan-freshness.js';

/**
 * A reserved connection of the pool with a name of its own, by which it can be ended when a call's answer is lost (C4). It keeps the engine's
 * terms until its end, and nobody else has it, before or after.
 */
export class LaneConnection {
  readonly connectedAt = performance.now();
  private readonly plans = new PlanFreshness(LANE_PLANS);
  private lost = false;
  private readonly onLost = (): void => {
    this.lost = true;
  };

  private constructor(
    readonly name: string,
    private readonly held: HeldSession,
  ) {
    this.held.session.client.on('error', this.onLost);
    this.held.session.client.on('end', this.onLost);
  }

  static async open(connections: Connections, name: string): Promise<LaneConnection> {
    const held = await connections.holdFresh('lane of the worker');
    const connection = new LaneConnection(name, held);
    try {
      await keepSession(held.session, name);
      return connection;
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  get session(): Session {
    return this.held.session;
  }

  /** Whether the connection has broken while nobody used it, or can no longer write; then nothing is in doubt. */
  get isLost(): boolean {
    return this.lost || this.session.isReadOnly;
  }

  /** Call it before a call that has work to do. */
  async refreshPlans(): Promise<void> {
    if (this.plans.isDue()) await discardPlans(this.session);
  }

  /** Cuts the connection under a call that takes too long; the call is rejected. */
  cut(): void {
    destroyClient(this.session.client);
  }

  async close(): Promise<void> {
    const { client } = this.session;
    client.removeListener('error', this.onLost);
    client.removeListener('end', this.onLost);
    await this.held.release(true);
  }
}
