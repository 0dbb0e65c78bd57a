/**
 * Lets calls that claim steps overlap, but none with an adoption: an adoption would take what a call under way has just claimed
 * for something that nobody knows (C4).
 */
export class CallGate {
  private inFlight = 0;
  private adopting: Promise<void> | undefined;
  private whenIdle: (() => void) | undefined;

  /** Before a call. Undefined: go on at once. Else wait for it and ask again. */
  get closed(): Promise<void> | undefined {
    return this.adopting;
  }

  enter(): void {
    this.inFlight++;
  }

  leave(): void {
    this.inFlight--;
    if (this.inFlight === 0) this.whenIdle?.();
  }

  /** Runs an adoption alone. */
  async alone<T>(adopt: () => Promise<T>): Promise<T> {
    while (this.adopting) await this.adopting;
    let open!: () => void;
    this.adopting = new Promise((resolve) => (open = resolve));
    try {
      if (this.inFlight > 0) await new Promise<void>((resolve) => (this.whenIdle = resolve));
      return await adopt();
    } finally {
      this.whenIdle = undefined;
      this.adopting = undefined;
      open();
    }
  }
}
