const WIDTH = 30;
/** The rate is that of the last moments. */
const RATE_MS = 3_000;
/** How much has to happen for a new line where lines cannot be overwritten. */
const STEP = 0.1;

/** Shows how far the work is: a bar in a terminal, a line now and then anywhere else. */
export class ProgressBar {
  private readonly recent: { at: number; done: number }[] = [];
  private shown = -1;

  constructor(
    private readonly total: number,
    private readonly unit: string,
    private readonly out: NodeJS.WriteStream = process.stdout,
  ) {}

  update(done: number, note: string): void {
    const part = this.total === 0 ? 1 : done / this.total;
    const text = `${done}/${this.total} ${this.unit}  ${this.rate(done)}/s  ${note}`;
    if (this.out.isTTY) {
      const full = Math.round(part * WIDTH);
      this.overwrite(
        `[${'#'.repeat(full)}${'-'.repeat(WIDTH - full)}] ${text}`.slice(0, this.out.columns || undefined),
      );
    } else if (Math.floor(part / STEP) > this.shown) {
      this.shown = Math.floor(part / STEP);
      this.out.write(`${text}\n`);
    }
  }

  /** Writes a line above the bar. */
  log(line: string): void {
    if (this.out.isTTY) this.overwrite('');
    this.out.write(`${line}\n`);
  }

  /** Leaves the bar as it is and goes on below it. */
  end(): void {
    if (this.out.isTTY) this.out.write('\n');
  }

  private rate(done: number): number {
    const at = performance.now();
    this.recent.push({ at, done });
    while (at - this.recent[0]!.at > RATE_MS) this.recent.shift();
    const oldest = this.recent[0]!;
    return at === oldest.at ? 0 : Math.round(((done - oldest.done) / (at - oldest.at)) * 1000);
  }

  private overwrite(line: string): void {
    this.out.write(`\r\u001B[2K${line}`);
  }
}
