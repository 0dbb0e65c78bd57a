import fc from 'fast-check';
import { CycloneError } from './errors/index.js';
import { describeFailure } from './failure.js';
import { CarefulEncoder } from './payload-encoder.js';
import { decodePayload, encodePayload } from './payload.js';

const anything = fc.anything({
  withBigInt: true,
  withBoxedValues: true,
  withDate: true,
  withMap: true,
  withSet: true,
  withNullPrototype: true,
  withSparseArray: true,
  withTypedArray: true,
  withUnicodeString: true,
});

/** What an encoder does: its text, or the code and path of its refusal. */
function outcome(encode: () => string): string {
  try {
    return encode();
  } catch (error) {
    if (!CycloneError.is(error)) throw error;
    return `${error.code} ${(error as { path?: string }).path}`;
  }
}

describe('for any value (R36)', () => {
  it('the quick way and the careful way to encode it agree', () => {
    fc.assert(
      fc.property(anything, (value) => {
        expect(outcome(() => encodePayload(value))).toBe(outcome(() => new CarefulEncoder({}).encode(value)));
      }),
      { numRuns: 2_000 },
    );
  });

  it('what is not refused is what JSON.stringify writes, storable by Postgres, and comes back', () => {
    fc.assert(
      fc.property(anything, (value) => {
        const text = outcome(() => encodePayload(value));
        fc.pre(!text.startsWith('CYCLONE_'));
        expect(text).toBe(JSON.stringify(value) ?? 'null');
        expect(text).not.toMatch(/\p{Surrogate}|(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/u);
        expect(encodePayload(decodePayload(text))).toBe(text);
      }),
      { numRuns: 2_000 },
    );
  });

  it('thrown by a handler, a failure can be described and stored (R16)', () => {
    fc.assert(
      fc.property(anything, (thrown) => {
        const { error, panicStack } = describeFailure(thrown);
        expect(error).not.toBe('');
        expect(`${error}${panicStack}`).not.toMatch(/\u0000|\p{Surrogate}/u);
        expect(Buffer.byteLength(error)).toBeLessThanOrEqual(8 * 1024);
      }),
      { numRuns: 2_000 },
    );
  });
});
