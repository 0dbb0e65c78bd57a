import type { RowWriter } from './rows.js';

export interface PageRequest {
  readonly limit: number;
  readonly cursor?: string;
}

/** Writes page after page until there are `limit` rows. Gives the cursor of what is left; null when that was all. */
export async function writePages<Row>(
  writer: RowWriter<Row>,
  { limit, size, cursor }: { readonly limit: number; readonly size: number; readonly cursor?: string },
  read: (request: PageRequest) => Promise<{ readonly rows: readonly Row[]; readonly next: string | null }>,
): Promise<string | null> {
  let from = cursor;
  while (true) {
    const { rows, next } = await read({
      limit: Math.min(limit - writer.written, size),
      ...(from === undefined ? {} : { cursor: from }),
    });
    writer.write(rows);
    if (next === null || writer.written >= limit) return next;
    from = next;
  }
}
