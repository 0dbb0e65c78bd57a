import { parseDuration, parsePositiveDuration, type Duration } from './duration.js';
import { InvalidOptionError } from './errors/index.js';

describe('a duration', () => {
  it.each<[Duration, number]>([
    [0, 0],
    [1500, 1_500],
    ['250ms', 250],
    ['30s', 30_000],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['7d', 604_800_000],
    ['2w', 1_209_600_000],
    ['0.5s', 500],
    ['3650d', 315_360_000_000],
  ])('%p is %p ms', (duration, ms) => expect(parseDuration(duration)).toBe(ms));

  it('that is not zero does not become zero by rounding', () => expect(parseDuration(0.2)).toBe(1));

  it.each([
    '',
    '5',
    'm',
    '5 m',
    '-5s',
    '1e3s',
    '5parsecs',
    '5M',
    NaN,
    Infinity,
    -1,
    1e300,
    '400000d',
    null,
    undefined,
    {},
    Symbol('s'),
    '5s\n',
  ])('%p is refused with the name of the option', (value) => {
    expect(() => parseDuration(value as Duration, 'timeout')).toThrow(InvalidOptionError);
    expect(() => parseDuration(value as Duration, 'timeout')).toThrow('The option timeout must be a duration');
  });

  it('of zero is refused where it must be positive', () => {
    expect(() => parsePositiveDuration('0s', 'timeout')).toThrow('must be longer than 0');
    expect(parsePositiveDuration('1ms', 'timeout')).toBe(1);
  });
});
