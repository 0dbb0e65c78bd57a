import { jest } from '@jest/globals';
import { sleep, startTimer } from './timer.js';

const DAY = 86_400_000;

describe('a timer (C12)', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('of 60 days fires after 60 days, once, and not at once', () => {
    const fired = jest.fn();
    startTimer(60 * DAY, fired);
    jest.advanceTimersByTime(60 * DAY - 1);
    expect(fired).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1);
    expect(fired).toHaveBeenCalledTimes(1);
    jest.advanceTimersByTime(120 * DAY);
    expect(fired).toHaveBeenCalledTimes(1);
  });

  it('can be cancelled, also after it was armed anew', () => {
    const fired = jest.fn();
    const timer = startTimer(60 * DAY, fired);
    jest.advanceTimersByTime(50 * DAY);
    timer.cancel();
    jest.advanceTimersByTime(50 * DAY);
    expect(fired).not.toHaveBeenCalled();
    expect(jest.getTimerCount()).toBe(0);
  });

  it('of a negative delay fires at the next turn', () => {
    const fired = jest.fn();
    startTimer(-5, fired);
    jest.advanceTimersByTime(1);
    expect(fired).toHaveBeenCalledTimes(1);
  });
});

describe('sleep', () => {
  it('ends early when its signal aborts, and leaves no timer and no listener', async () => {
    jest.useFakeTimers();
    try {
      const controller = new AbortController();
      const removed = jest.spyOn(controller.signal, 'removeEventListener');
      const slept = sleep(DAY, { signal: controller.signal });
      controller.abort();
      await slept;
      expect(jest.getTimerCount()).toBe(0);
      expect(removed).toHaveBeenCalled();
    } finally {
      jest.useRealTimers();
    }
  });

  it('does not start when its signal has aborted', async () => {
    await expect(sleep(DAY, { signal: AbortSignal.abort() })).resolves.toBeUndefined();
  });

  it('resolves after its delay', async () => {
    const start = performance.now();
    await sleep(20);
    expect(performance.now() - start).toBeGreaterThanOrEqual(18);
  });
});
