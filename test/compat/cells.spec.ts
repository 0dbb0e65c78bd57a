import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../structure/source-files.js';
import { CELLS, versionsOf } from './cells.mjs';

/** `0.3.31` is 0.3 and `1.1.1` is 1: what may break. */
const major = (version: string): string => /^(0\.\d+|\d+)/.exec(version)?.[0] ?? '';
const rows = CELLS.map((cell) => versionsOf(cell));
type Column = keyof (typeof rows)[number];
const COLUMNS: Column[] = ['Nest', 'TypeORM', 'PostgreSQL', 'Node'];
/** Of PostgreSQL the versions between do nothing that one of the two others does not. */
const ends = (column: Column, versions: string[]): string[] =>
  column === 'PostgreSQL' ? [versions.toSorted()[0] ?? '', versions.toSorted().at(-1) ?? ''] : versions;

describe('the cells of npm run test:compat', () => {
  it('let each pair of major versions meet, of PostgreSQL the oldest and the newest', () => {
    const missing = COLUMNS.flatMap((one, i) =>
      COLUMNS.slice(i + 1).flatMap((other) => {
        const all = (column: Column) => ends(column, [...new Set(rows.map((row) => major(row[column])))]);
        const pairs = all(one).flatMap((a) => all(other).map((b) => ({ one, a, other, b })));
        return pairs.filter(({ a, b }) => !rows.some((row) => major(row[one]) === a && major(row[other]) === b));
      }),
    );
    expect(missing).toEqual([]);
  });

  it('try every PostgreSQL that is supported (F36)', () => {
    const tried = new Set(rows.map(({ PostgreSQL }) => major(PostgreSQL)));
    expect([...tried].toSorted()).toEqual(['14', '15', '16', '17', '18']);
  });

  it('are what the README says was tried', () => {
    const [table = ''] = /\| needs .*?\n\n/s.exec(readFileSync(join(ROOT, 'README.md'), 'utf8')) ?? [];
    const versions = [...new Set(rows.flatMap((row) => Object.values(row)))];
    expect(versions.filter((version) => !table.includes(version))).toEqual([]);
  });
});
