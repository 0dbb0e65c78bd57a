import { Progress } from './progress.js';
import { age, RowWriter, time, writeFields, type Listing } from './rows.js';

class Screen {
  text = '';
  constructor(
    readonly isTTY: boolean,
    readonly columns = 40,
  ) {}
  write(text: string): void {
    this.text += text;
  }
}

interface Row {
  id: string;
  note: string | null;
}
const LISTING: Listing<Row> = {
  columns: [
    { title: 'ID', value: ({ id }) => id },
    { title: 'NOTE', value: ({ note }) => note },
  ],
  id: ({ id }) => id,
};
const ROWS: Row[] = [
  { id: '1', note: null },
  { id: '12345', note: 'x'.repeat(60) },
];

function written(format: 'table' | 'json' | 'ids', batches: Row[][], screen = new Screen(false)): string {
  const writer = new RowWriter(format, LISTING, screen);
  for (const batch of batches) writer.write(batch);
  writer.end();
  return screen.text;
}

describe('rows', () => {
  it('make one table, whose last column is cut on a terminal only', () => {
    expect(written('table', [ROWS, [{ id: '2', note: 'y' }]])).toBe(
      `ID     NOTE\n1      -\n12345  ${'x'.repeat(60)}\n2      y\n`,
    );
    expect(written('table', [ROWS], new Screen(true))).toBe(`ID     NOTE\n1      -\n12345  ${'x'.repeat(32)}…\n`);
    const whole = new Screen(true);
    new RowWriter('table', { ...LISTING, whole: true }, whole).write(ROWS);
    expect(whole.text).toContain('x'.repeat(60));
    // A terminal that does not know its width.
    expect(written('table', [ROWS], new Screen(true, 0))).toContain('x'.repeat(60));
    expect(written('table', [[]])).toBe('');
  });

  it('make one JSON array, however many batches they come in', () => {
    expect(JSON.parse(written('json', [ROWS.slice(0, 1), [], ROWS.slice(1)]))).toEqual(ROWS);
    expect(JSON.parse(written('json', []))).toEqual([]);
  });

  it('give each id once, and none where there is none', () => {
    expect(written('ids', [ROWS, ROWS])).toBe('1\n12345\n');
    expect(() => new RowWriter('ids', { columns: [] })).toThrow('no ids');
  });
});

it('fields stand below each other, lists too', () => {
  const screen = new Screen(false);
  writeFields('table', { a: 1, list: ['x', 'y\n'], none: null, empty: [] }, {}, screen);
  expect(screen.text).toBe('a      1\nlist   x\n       y\\n\nnone   -\nempty  []\n');
});

it('times are shown to the second, ages roughly', () => {
  expect(time('2026-01-31T12:00:00.123456+02:00')).toBe('2026-01-31T10:00:00Z');
  expect([time(null), time('never')]).toEqual([null, 'never']);
  expect([0, 89_000, 90_000, 5_400_000, 172_800_000, null].map(age)).toEqual(['0s', '89s', '2m', '2h', '2d', null]);
});

describe('progress', () => {
  it('is a bar with a rate and an end on a terminal, and is gone afterwards', () => {
    const screen = new Screen(true, 80);
    const progress = new Progress('runs', 200, screen);
    progress.update(50);
    progress.update(51); // too soon to be drawn again
    expect(screen.text).toMatch(/^\r\[######\.{18}\] {2}50\/200 {2}runs {2}\d+\/s {2}\d+ s left\u001b\[K$/);
    progress.update(200);
    expect(screen.text).toMatch(/\[#{24}\] {2}200\/200 {2}runs {2}\d+\/s\u001b\[K$/);
    progress.end();
    expect(screen.text.endsWith('\r\u001b[K')).toBe(true);
  });

  it('counts where nobody knows the end, and is silent without a terminal', () => {
    const screen = new Screen(true, 80);
    new Progress('runs', undefined, screen).update(7);
    expect(screen.text).toMatch(/^\r7 {2}runs {2}/);
    const file = new Screen(false);
    const silent = new Progress('runs', 10, file);
    silent.update(10);
    silent.end();
    expect(file.text).toBe('');
  });
});
