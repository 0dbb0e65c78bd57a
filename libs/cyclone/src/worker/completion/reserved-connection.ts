import type { Connections, HeldSession } from '../../store/connections.js';

/** How long nothing is opened in advance after that has failed. */
const REST_MS = 1_000;

/** A connection of the pool that is kept for completion transactions, one after the other. It is made anew when it breaks. */
export class ReservedConnection {
  private state: 'none' | 'opening' | 'idle' | 'out' = 'none';
  private held: HeldSession | undefined;
  private isLost = false;
  private failedAt = -Infinity;
  private closed = false;
  private readonly onLost = (): void => {
    this.isLost = true;
    if (this.state === 'idle') void this.drop(true);
  };

  /** @param onChange told when it can be taken, or that it could not be opened, with the error */
  constructor(
    private readonly connections: Connections,
    private readonly onChange: (error?: unknown) => void,
  ) {}

  /** How many of it are in use. */
  get inUse(): number {
    return this.state === 'out' ? 1 : 0;
  }

  /** Opens it in advance, unless that is done, under way, or has failed a moment ago. */
  open(): void {
    if (this.state === 'none' && performance.now() - this.failedAt >= REST_MS) void this.connect();
  }

  /** The connection, if it is there and idle; else sees to it that it will be. */
  take(): HeldSession | undefined {
    if (this.state === 'none') void this.connect();
    if (this.state !== 'idle' || !this.held) return undefined;
    this.state = 'out';
    return { session: this.held.session, release: (broken) => this.comeBack(broken ?? false) };
  }

  async close(): Promise<void> {
    this.closed = true;
    if (this.state === 'idle') await this.drop(false);
  }

  private async connect(): Promise<void> {
    if (this.closed) return;
    this.state = 'opening';
    try {
      const held = await this.connections.hold('reserve for completion transactions');
      if (this.isClosed) return await held.release();
      held.session.client.on('error', this.onLost);
      held.session.client.on('end', this.onLost);
      this.held = held;
      this.isLost = false;
      this.state = 'idle';
      this.onChange();
    } catch (error) {
      this.state = 'none';
      this.failedAt = performance.now();
      this.onChange(error);
    }
  }

  /** Asked after an await. */
  private get isClosed(): boolean {
    return this.closed;
  }

  private async comeBack(broken: boolean): Promise<void> {
    if (broken || this.isLost || this.closed) return this.drop(broken || this.isLost);
    this.state = 'idle';
    this.onChange();
  }

  private async drop(broken: boolean): Promise<void> {
    const { held } = this;
    this.held = undefined;
    this.state = 'none';
    held?.session.client.removeListener('error', this.onLost);
    held?.session.client.removeListener('end', this.onLost);
    try {
      await held?.release(broken);
    } finally {
      if (!this.closed) this.onChange();
    }
  }
}
