import { InvalidOptionError } from './errors/setup-errors.js';

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/**
 * A length of time: milliseconds as a number, or a number with a unit: `'250ms'`, `'30s'`, `'5m'`, `'2h'`, `'7d'`, `'2w'`.
 * Finite, at least 0, at most 1,000 years; fractions are rounded to whole milliseconds.
 */
export type Duration = number | `${number}${keyof typeof UNIT_MS}`;

const MAX_MS = 1_000 * 365 * UNIT_MS.d;
const SYNTAX = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)$/;

/**
 * Milliseconds of a duration.
 * @param option what to call it in the error
 * @throws InvalidOptionError when it is no duration
 */
export function parseDuration(value: Duration, option = 'duration'): number {
  const exact = typeof value === 'number' ? value : parseText(value);
  if (!(exact >= 0 && exact <= MAX_MS)) {
    throw new InvalidOptionError(
      option,
      `must be a duration from 0 to 1,000 years, as milliseconds or like '30s', '5m', '2h' or '7d'; it is ${show(value)}.`,
    );
  }
  const rounded = Math.round(exact);
  return rounded === 0 && exact > 0 ? 1 : rounded;
}

/** Like `parseDuration`, for what must not be zero. */
export function parsePositiveDuration(value: Duration, option: string): number {
  const ms = parseDuration(value, option);
  if (ms === 0) throw new InvalidOptionError(option, 'must be longer than 0.');
  return ms;
}

function parseText(value: unknown): number {
  const match = typeof value === 'string' ? SYNTAX.exec(value) : null;
  return match ? Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS] : NaN;
}

function show(value: unknown): string {
  return typeof value === 'string'
    ? JSON.stringify(value.slice(0, 40))
    : typeof value === 'number'
      ? `${value}`
      : `a ${typeof value}`;
}
