import fc from 'fast-check';
import { visible, visibleJson } from './visible.js';

/** What a terminal must never get, found without the expression that the code uses. */
const HARMFUL = (character: string): boolean => {
  const code = character.codePointAt(0) ?? 0;
  return (
    code < 0x20 ||
    (code >= 0x7f && code <= 0x9f) ||
    code === 0xad ||
    code === 0x61c ||
    (code >= 0x200b && code <= 0x200f) ||
    (code >= 0x2028 && code <= 0x202e) ||
    (code >= 0x2060 && code <= 0x206f) ||
    (code >= 0xfe00 && code <= 0xfe0f) ||
    code === 0xfeff ||
    (code >= 0xfff9 && code <= 0xfffb) ||
    (code >= 0xe0000 && code <= 0xe0fff)
  );
};
const awkward = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.integer({ min: 0, max: 0x10ffff }).map((code) => String.fromCodePoint(code)) }),
  fc.string({
    unit: fc.constantFrom('\u009b', '\u202e', '\u{e0041}', '\ufe0f', '\u2028', '\n', 'a', '"', '\\', '\ud800'),
  }),
);

describe('what a terminal obeys or hides (F27)', () => {
  it('never stands in a cell of a table', () => {
    fc.assert(
      fc.property(awkward, (text) => {
        expect([...visible(text)].filter(HARMFUL)).toEqual([]);
      }),
    );
  });

  it('never stands in JSON, which still means the same', () => {
    fc.assert(
      fc.property(awkward, fc.constantFrom(undefined, 2), (text, indent) => {
        const json = visibleJson({ [text]: [text] }, indent);
        expect([...json].filter((character) => character !== '\n' && HARMFUL(character))).toEqual([]);
        expect(JSON.parse(json)).toEqual({ [text]: [text] });
      }),
    );
  });

  it('leaves readable text as it is', () => {
    for (const text of ['Grüße, 世界', 'a\\x1b', '😀', 'naïve – “quoted”', '\u00a0']) expect(visible(text)).toBe(text);
  });
});
