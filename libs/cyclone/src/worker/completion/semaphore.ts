/** A place in a semaphore, or in the line for one. */
export interface Permit {
  /** Resolves when the place is had, or when the line was left. */
  readonly granted: Promise<void>;
  /** Gives the place back, or leaves the line; harmless when it was done. */
  release(): void;
}

/**
 * Bounds how many completion transactions are open at once: fewer than the pool has connections, because a handler inside one
 * may need a second connection (C14).
 */
export class Semaphore {
  private free: number;
  private readonly line = new Set<() => void>();

  constructor(permits: number) {
    this.free = permits;
  }

  acquire(): Permit {
    let held = false;
    let done!: () => void;
    const granted = new Promise<void>((resolve) => (done = resolve));
    const enter = (): void => {
      held = true;
      this.free--;
      this.line.delete(enter);
      done();
    };
    if (this.free > 0) enter();
    else this.line.add(enter);
    return {
      granted,
      release: () => {
        this.line.delete(enter);
        done();
        if (!held) return;
        held = false;
        this.free++;
        const [next] = this.line;
        next?.();
      },
    };
  }
}
