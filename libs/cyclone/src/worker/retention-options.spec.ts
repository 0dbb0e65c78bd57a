import { resolveRetention } from '#cyclone/worker/retention-options.js';

describe('options of the retention sweep (R35)', () => {
  it('have defaults that delete only what the steps allow', () => {
    expect(resolveRetention({})).toEqual({ defaultAgeMs: null, intervalMs: 3_600_000, batchSize: 1_000 });
  });

  it.each([
    [{ interval: 5 }, /retention\.interval must be at least 100 ms/],
    [{ interval: '1 hour' }, /retention\.interval must be a duration/],
    [{ defaultAge: 'a month' }, /retention\.defaultAge must be a duration/],
    [{ batchSize: 0 }, /retention\.batchSize must be a whole number from 1 to 10000/],
    [{ batchSize: '5' }, /retention\.batchSize/],
    [{ batchSize: 1.5 }, /retention\.batchSize/],
    [{ batchSize: 10_001 }, /retention\.batchSize/],
    [{ maxAge: 1 }, /retention\.maxAge is no option here/],
    [[], /retention must be an object/],
  ])('refuse %j by name', (options, message) => {
    expect(() => resolveRetention(options as never)).toThrow(
      expect.objectContaining({ code: 'CYCLONE_INVALID_OPTION', message: expect.stringMatching(message) }),
    );
  });
});
