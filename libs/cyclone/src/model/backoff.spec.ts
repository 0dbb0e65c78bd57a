import { DEFAULT_BACKOFF, resolveBackoff, type Backoff } from './backoff.js';
import { InvalidOptionError } from './errors/index.js';

describe('a backoff (R15)', () => {
  it('is by default exponential from 1 s, factor 2, full jitter, at most 1 h', () => {
    expect(resolveBackoff(undefined)).toEqual({
      numeric: { baseMs: 1_000, factor: 2, maxMs: 3_600_000, jitter: true },
    });
  });

  it('resolves to the numbers that the step stores (C16)', () => {
    expect(resolveBackoff({ type: 'exponential', base: '2s', factor: 3, max: '1m', jitter: false }).numeric).toEqual({
      baseMs: 2_000,
      factor: 3,
      maxMs: 60_000,
      jitter: false,
    });
    expect(resolveBackoff({ type: 'fixed', delay: '10s' }).numeric).toEqual({
      baseMs: 10_000,
      factor: 1,
      maxMs: 10_000,
      jitter: false,
    });
    expect(resolveBackoff({ type: 'exponential', base: '2h' }).numeric.maxMs).toBe(7_200_000);
  });

  it('of your own is asked for each failed attempt, and stores the default for the rest (C16)', () => {
    const { numeric, customDelay } = resolveBackoff((attempt) => `${attempt}s`);
    expect(numeric).toEqual(DEFAULT_BACKOFF);
    expect(customDelay?.(3, new Error('x'))).toBe(3_000);
    expect(() => resolveBackoff(() => 'later' as never).customDelay?.(1, null)).toThrow(InvalidOptionError);
  });

  it.each([
    [null, 'retry.backoff'],
    [{ type: 'linear' }, 'retry.backoff'],
    [{ type: 'fixed' }, 'retry.backoff.delay'],
    [{ type: 'exponential', base: 0 }, 'retry.backoff.base'],
    [{ type: 'exponential', base: '1s', factor: 0.5 }, 'retry.backoff.factor'],
    [{ type: 'exponential', base: '1s', factor: NaN }, 'retry.backoff.factor'],
    [{ type: 'exponential', base: '1s', factor: 1e9 }, 'retry.backoff.factor'],
    [{ type: 'exponential', base: '10s', max: '1s' }, 'retry.backoff.max'],
    [{ type: 'exponential', base: '1s', jitter: 'yes' }, 'retry.backoff.jitter'],
  ])('like %j is refused, naming %s', (backoff, option) => {
    expect(() => resolveBackoff(backoff as unknown as Backoff)).toThrow(
      expect.objectContaining({ code: 'CYCLONE_INVALID_OPTION', option }),
    );
  });
});
