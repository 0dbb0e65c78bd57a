import { parse } from 'csv-parse/sync';

const SEPARATORS = [',', ';', '\t'];

/** How a CSV text is to be read. */
export interface CsvFormat {
  separator: string;
  /** The index of the line that names the columns. */
  firstLine: number;
}

/** What the first line says cannot be followed. */
export class CsvFormatError extends Error {}

/**
 * What separates the fields: what a line `sep=;` says, as Excel writes it above the names of the columns; else the separator with which the
 * first line names all of them; else a comma.
 * @throws CsvFormatError when the line names something else
 */
export function formatOf(lines: readonly string[], columns: readonly string[]): CsvFormat {
  const firstLine = Math.max(
    lines.findIndex((line) => line.trim() !== ''),
    0,
  );
  const [, named] = /^"?sep=(.*?)"?$/i.exec(lines[firstLine] ?? '') ?? [];
  if (named === undefined) {
    const fits = (separator: string) =>
      columns.every((name) => namesOf(lines[firstLine] ?? '', separator).includes(name));
    return { separator: SEPARATORS.find(fits) ?? ',', firstLine };
  }
  if (!SEPARATORS.includes(named)) {
    throw new CsvFormatError(
      `The line sep=${named} names no separator that is known: use a comma, a semicolon or a tab.`,
    );
  }
  return { separator: named, firstLine: firstLine + 1 };
}

function namesOf(line: string, separator: string): string[] {
  try {
    const [fields = []] = parse(line, { delimiter: separator, trim: true }) as string[][];
    return fields.map((name) => name.toLowerCase());
  } catch {
    return []; // a quote that is not closed in it: whoever reads the line says so
  }
}
