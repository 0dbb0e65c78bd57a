/** Where a bar is drawn: stderr. */
export interface BarStream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

const REDRAW_MS = 100;
const BAR_WIDTH = 24;

/** How far long work has come, and how fast: one line that is drawn again and again, on a terminal only. */
export class Progress {
  private readonly started = performance.now();
  private drawn = -Infinity;
  private shown = false;

  /** @param total of what is to be done; undefined when nobody knows */
  constructor(
    private readonly what: string,
    private readonly total: number | undefined,
    private readonly stream: BarStream = process.stderr,
  ) {}

  /** Whether anybody sees it. */
  get visible(): boolean {
    return this.stream.isTTY === true;
  }

  update(done: number): void {
    const now = performance.now();
    if (!this.visible || (now - this.drawn < REDRAW_MS && done !== this.total)) return;
    this.drawn = now;
    this.shown = true;
    const line = [...this.bar(done), this.what, ...this.rate(done, now)].join('  ');
    this.stream.write(`\r${line.slice(0, (this.stream.columns || 80) - 1)}\u001b[K`);
  }

  /** Removes the line, so that what comes next stands alone. */
  end(): void {
    if (this.shown) this.stream.write('\r\u001b[K');
    this.shown = false;
  }

  private bar(done: number): string[] {
    if (this.total === undefined || this.total === 0) return [String(done)];
    const share = Math.min(1, done / this.total);
    const full = Math.round(share * BAR_WIDTH);
    return [`[${'#'.repeat(full)}${'.'.repeat(BAR_WIDTH - full)}]`, `${done}/${this.total}`];
  }

  private rate(done: number, now: number): string[] {
    const perSecond = done / Math.max(0.001, (now - this.started) / 1000);
    if (perSecond === 0) return [];
    const left =
      this.total === undefined || done >= this.total ? [] : [`${Math.ceil((this.total - done) / perSecond)} s left`];
    return [`${perSecond < 10 ? perSecond.toFixed(1) : Math.round(perSecond)}/s`, ...left];
  }
}
