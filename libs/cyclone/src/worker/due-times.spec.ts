import { jest } from '@jest/globals';
import { DueTimes } from './due-times.js';

describe('the times at which work comes due (F31)', () => {
  let due: string[];
  let times: DueTimes;
  beforeEach(() => {
    jest.useFakeTimers();
    due = [];
    times = new DueTimes((queues) => due.push(queues.join()));
  });
  afterEach(() => {
    times.stop();
    jest.useRealTimers();
  });

  it('are told when they have come and never before, each queue once, with one timer', () => {
    times.expect('slow', 2_000);
    times.expect('fast', 100);
    times.expect('fast', 100);
    times.expect('other', 100);
    expect(jest.getTimerCount()).toBe(1);
    jest.advanceTimersByTime(100);
    expect(due).toEqual([]);
    jest.advanceTimersByTime(11);
    expect(due).toEqual(['fast,other']);
    expect(jest.getTimerCount()).toBe(1);
    jest.advanceTimersByTime(2_000);
    expect(due).toEqual(['fast,other', 'slow']);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('are bounded, and an earlier one always finds room', () => {
    for (let i = 0; i < 5_000; i++) times.expect(`q${i}`, 1_000 + 20 * i);
    times.expect('first', 50);
    jest.advanceTimersByTime(100);
    expect(due).toEqual(['first']);
    jest.advanceTimersByTime(1_000_000);
    expect(due).toHaveLength(1_001);
  });
});
