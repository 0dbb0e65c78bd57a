import { parse } from 'csv-parse/sync';
import type { CsvFormat } from './csv-separator.js';

export interface CsvRecord {
  /** Where it begins, from 1. */
  line: number;
  fields: string[];
}
export interface CsvProblem {
  line: number;
  reason: string;
}
/** A line that is no record. */
export interface UnreadableLine extends CsvProblem {
  /** Its fields as far as they can be told: those before the first quote. */
  fields: string[];
}

/** A field that goes over more lines than this is a quote that somebody forgot to close. */
const MAX_HEIGHT = 50;

/** The lines of a text, without a byte order mark. */
export function linesOf(text: string): string[] {
  return text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/);
}

/**
 * The records of a CSV text: quoted fields are understood, lines without any value passed over. Each record is parsed by itself, so a
 * stray quote spoils its own line and not the rest of the file.
 */
export function* csvRecords(
  lines: readonly string[],
  { separator, firstLine }: CsvFormat,
): Generator<CsvRecord | UnreadableLine> {
  for (let at = firstLine; at < lines.length;) {
    const found = lines[at]!.trim() === '' ? undefined : readRecord(lines, at, separator);
    if (found?.record.fields.some((field) => field.trim() !== '') || (found && 'reason' in found.record)) {
      yield { line: at + 1, ...found.record };
    }
    at += found?.height ?? 1;
  }
}

interface Found {
  record: { fields: string[] } | { fields: string[]; reason: string };
  height: number;
}

function readRecord(lines: readonly string[], at: number, separator: string): Found {
  let record = '';
  for (let height = 1; height <= MAX_HEIGHT && at + height <= lines.length; height++) {
    record += (height > 1 ? '\n' : '') + lines[at + height - 1];
    // An open quote is closed by an odd one, so only then is it worth a look.
    if (height > 1 && record.split('"').length % 2 === 0) continue;
    try {
      const [fields = []] = parse(record, { delimiter: separator, trim: true }) as string[][];
      return { record: { fields }, height };
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      // A quoted field may go on in the next line. Anything else is wrong with this line alone.
      if (code === 'CSV_QUOTE_NOT_CLOSED') continue;
      return unreadable(lines[at]!, separator, height === 1 ? message : undefined);
    }
  }
  return unreadable(lines[at]!, separator);
}

function unreadable(line: string, separator: string, reason = 'a quote is not closed'): Found {
  const before = line.slice(0, line.indexOf('"')).split(separator);
  const fields = before.slice(0, -1).map((field) => field.trim());
  return { record: { fields, reason }, height: 1 };
}
