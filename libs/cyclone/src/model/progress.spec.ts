import { checkProgress, mergeProgress } from '#cyclone/model/progress.js';

describe('what a handler reports of its progress', () => {
  it('is a fraction from 0 to 1, as fine as it is stored, and a note', () => {
    expect(checkProgress(0, undefined)).toEqual({ fraction: 0, note: null });
    expect(checkProgress(1, '')).toEqual({ fraction: 1, note: '' });
    expect(checkProgress(1 / 3, 'page 1 of 3')).toEqual({ fraction: 0.333333, note: 'page 1 of 3' });
    // Postgres refuses a real that is too small for it, and with it the renewal of every other lease.
    expect(checkProgress(1e-60, undefined).fraction).toBe(0);
    expect(Object.is(checkProgress(-0, undefined).fraction, 0)).toBe(true);
  });

  it.each([
    [1.01, undefined, /fraction of ctx\.progress\(\) must be a number from 0 to 1; it is 1\.01\. Divide/],
    [-0.1, undefined, /fraction/],
    [NaN, undefined, /it is NaN/],
    [Infinity, undefined, /fraction/],
    ['0.5', undefined, /it is a string/],
    [undefined, undefined, /it is a undefined/],
    [0.5, 'a\u0000b', /note of ctx\.progress\(\) must be a text of at most 1024 bytes/],
    [0.5, '\ud800', /note/],
    [0.5, 'é'.repeat(513), /note/],
    [0.5, 7, /note/],
    [0.5, null, /note/],
  ])('is refused as %p with note %p', (fraction, note, message) => {
    expect(() => checkProgress(fraction as never, note as never)).toThrow(
      expect.objectContaining({ code: 'CYCLONE_INVALID_OPTION', message: expect.stringMatching(message) }),
    );
  });

  it('keeps the last note when the newer report has none', () => {
    const older = { fraction: 0.1, note: 'first' };
    expect(mergeProgress(older, { fraction: 0.2, note: null })).toEqual({ fraction: 0.2, note: 'first' });
    expect(mergeProgress(older, { fraction: 0.2, note: '' })).toEqual({ fraction: 0.2, note: '' });
    expect(mergeProgress(undefined, { fraction: 0.2, note: null })).toEqual({ fraction: 0.2, note: null });
  });
});
