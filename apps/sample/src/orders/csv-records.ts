import { parse } from 'csv-parse/sync';

export interface CsvRecord {
  /** Where it begins, from 1. */
  line: number;
  fields: string[];
}
export interface CsvProblem {
  line: number;
  reason: string;
}

/** A field that goes over more lines than this is a quote that somebody forgot to close. */
const MAX_HEIGHT = 50;

/**
 * The records of a CSV text: quoted fields, CRLF and a byte order mark are understood, empty lines passed over. Each record is
 * parsed by itself, so a stray quote spoils its own line and not the rest of the file.
 */
export function* csvRecords(text: string): Generator<CsvRecord | CsvProblem> {
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/);
  for (let at = 0; at < lines.length;) {
    const found = lines[at]!.trim() === '' ? undefined : readRecord(lines, at);
    if (found) yield { line: at + 1, ...found.result };
    at += found?.height ?? 1;
  }
}

type Found = { result: { fields: string[] } | { reason: string }; height: number };

function readRecord(lines: string[], at: number): Found {
  let record = '';
  for (let height = 1; height <= MAX_HEIGHT && at + height <= lines.length; height++) {
    record += (height > 1 ? '\n' : '') + lines[at + height - 1];
    // An open quote is closed by an odd one, so only then is it worth a look.
    if (height > 1 && record.split('"').length % 2 === 0) continue;
    try {
      const [fields = []] = parse(record, { trim: true }) as string[][];
      return { result: { fields }, height };
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      // A quoted field may go on in the next line. Anything else is wrong with this line alone.
      if (code === 'CSV_QUOTE_NOT_CLOSED') continue;
      return { result: { reason: height === 1 ? message : 'a quote is not closed' }, height: 1 };
    }
  }
  return { result: { reason: 'a quote is not closed' }, height: 1 };
}
