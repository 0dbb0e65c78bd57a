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
  private line: Place[] = [];

  constructor(private free: number) {}

  acquire(): Permit {
    const place = new Place(() => this.onReleased());
    if (this.free > 0) {
      this.free--;
      place.enter();
    } else this.line.push(place);
    return place;
  }

  private onReleased(): void {
    let next = this.line.shift();
    while (next?.left) next = this.line.shift();
    if (next) next.enter();
    else this.free++;
  }
}

class Place implements Permit {
  readonly granted: Promise<void>;
  left = false;
  private held = false;
  private go!: () => void;

  constructor(private readonly onReleased: () => void) {
    this.granted = new Promise((resolve) => (this.go = resolve));
  }

  enter(): void {
    this.held = true;
    this.go();
  }

  release(): void {
    if (this.left) return;
    this.left = true;
    if (this.held) this.onReleased();
    else this.go();
  }
}
