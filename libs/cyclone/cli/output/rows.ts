import { UsageError, type Format } from '../command-line.js';
import { visible, visibleJson } from './visible.js';

export interface Column<Row> {
  readonly title: string;
  readonly value: (row: Row) => unknown;
}

/** How rows of one kind are shown. */
export interface Listing<Row> {
  readonly columns: readonly Column<Row>[];
  /** What `--format ids` prints of a row; without it that format is refused. */
  readonly id?: (row: Row) => string;
  /** Whether the last column is shown whole, however narrow the terminal. @default false */
  readonly whole?: boolean;
}

export interface RowStream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

const GAP = '  ';
/** The last column of a table is cut to the terminal, but not below this. */
const SHORTEST = 20;

/** Writes rows as they come, so that a long list needs no memory. A table gets its widths from its first rows. */
export class RowWriter<Row> {
  private readonly ids = new Set<string>();
  private widths: number[] | undefined;
  private count = 0;

  constructor(
    private readonly format: Format,
    private readonly listing: Listing<Row>,
    private readonly stream: RowStream = process.stdout,
  ) {
    if (format === 'ids' && !listing.id)
      throw new UsageError('This command has no ids to print: --format table or json.');
  }

  get written(): number {
    return this.count;
  }

  write(rows: readonly Row[]): void {
    if (rows.length === 0) return;
    if (this.format === 'json') this.writeJson(rows);
    else if (this.format === 'ids') this.writeIds(rows);
    else this.writeTable(rows);
    this.count += rows.length;
  }

  end(): void {
    if (this.format === 'json') this.stream.write(this.count === 0 ? '[]\n' : '\n]\n');
  }

  private writeJson(rows: readonly Row[]): void {
    rows.forEach((row, i) => this.stream.write(`${this.count + i === 0 ? '[\n' : ',\n'}${visibleJson(row)}`));
  }

  private writeIds(rows: readonly Row[]): void {
    for (const row of rows) {
      const id = this.listing.id?.(row) ?? '';
      if (this.ids.has(id)) continue;
      this.ids.add(id);
      this.stream.write(`${visible(id)}\n`);
    }
  }

  private writeTable(rows: readonly Row[]): void {
    const { columns } = this.listing;
    const lines = rows.map((row) => columns.map((column) => cell(column.value(row))));
    if (!this.widths) {
      lines.unshift(columns.map(({ title }) => title));
      this.widths = columns.map((_, i) => Math.max(...lines.map((line) => widthOf(line[i] ?? ''))));
    }
    const widths = this.widths;
    const before = widths.slice(0, -1).reduce((sum, width) => sum + width + GAP.length, 0);
    const room =
      this.stream.isTTY && !this.listing.whole ? Math.max(SHORTEST, (this.stream.columns || 80) - before) : Infinity;
    for (const line of lines) {
      const shown = line.map((text, i) => (i < line.length - 1 ? padded(text, widths[i] ?? 0) : cut(text, room)));
      this.stream.write(`${shown.join(GAP).trimEnd()}\n`);
    }
  }
}

/** Writes one thing: its fields below each other, the elements of a list too, or a JSON object. */
export function writeFields(
  format: Format,
  fields: Readonly<Record<string, unknown>>,
  { json = fields, id }: { readonly json?: unknown; readonly id?: string } = {},
  stream: RowStream = process.stdout,
): void {
  if (format === 'json') return void stream.write(`${visibleJson(json, 2)}\n`);
  if (format === 'ids') {
    if (id === undefined) throw new UsageError('This command has no ids to print: --format table or json.');
    return void stream.write(`${visible(id)}\n`);
  }
  const width = Math.max(...Object.keys(fields).map(widthOf));
  for (const [name, value] of Object.entries(fields)) {
    const lines: readonly unknown[] = Array.isArray(value) && value.length > 0 ? value : [value];
    lines.forEach((line, i) => stream.write(`${padded(i === 0 ? name : '', width)}${GAP}${cell(line)}\n`));
  }
}

/** A time as tables show it: UTC, to the second. */
export function time(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  const date = new Date(value);
  return Number.isNaN(date.getTime()) ? value : date.toISOString().replace(/\.\d+Z$/, 'Z');
}

/** A length of time, roughly: `40s`, `12m`, `3h`, `9d`. */
export function age(ms: number | null): string | null {
  if (ms === null) return null;
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 90) return `${seconds}s`;
  if (seconds < 5_400) return `${Math.round(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)}h` : `${Math.round(seconds / 86_400)}d`;
}

function cell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  return visible(typeof value === 'object' ? JSON.stringify(value) : String(value));
}

function widthOf(text: string): number {
  return Array.from(text).length;
}

function padded(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - widthOf(text)));
}

function cut(text: string, room: number): string {
  if (widthOf(text) <= room) return text;
  return `${Array.from(text)
    .slice(0, room - 1)
    .join('')}…`;
}
