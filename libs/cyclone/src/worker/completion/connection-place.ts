import type { HeldSession } from '../../store/connections.js';

/** For which step a connection is wanted. */
export interface Customer {
  readonly key: string;
  readonly kind: string;
}

/** A place in the line for a connection, and then the connection. */
export class Place {
  /** Resolves when the connection is had; undefined when the line was left. Rejects when there is none to be had. */
  readonly granted: Promise<HeldSession | undefined>;
  readonly since = performance.now();
  reported = false;
  private held: HeldSession | undefined;
  private isOver = false;
  private resolve!: (held: HeldSession | undefined) => void;
  private reject!: (error: unknown) => void;

  constructor(
    readonly customer: Customer,
    private readonly onLeft: () => void,
  ) {
    this.granted = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  give(held: HeldSession): void {
    this.held = held;
    this.resolve(held);
  }

  refuse(error: unknown): void {
    this.isOver = true;
    this.reject(error);
  }

  /** Gives the connection back, or cuts a `broken` one, or leaves the line; harmless when it was done. */
  async release(broken: boolean): Promise<void> {
    if (this.isOver) return;
    this.isOver = true;
    if (this.held) return this.held.release(broken);
    this.onLeft();
    this.resolve(undefined);
  }
}
