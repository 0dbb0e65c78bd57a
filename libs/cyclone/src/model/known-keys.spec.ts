import { InvalidOptionError } from './errors/setup-errors.js';
import { checkKeys } from './known-keys.js';
import { resolveBackoff } from './backoff.js';
import { resolveHandlerOptions } from './options.js';

describe('misspelt options', () => {
  it('are refused by name, with the names that exist', () => {
    expect(() => checkKeys({ retires: 3 }, ['retry', 'queue'], '', 'node "a"')).toThrow(
      /retires of node "a".*retry, queue/,
    );
    expect(() => checkKeys({ retry: 3 }, ['retry', 'queue'], '')).not.toThrow();
    expect(() => checkKeys(undefined, ['retry'], '')).not.toThrow();
  });

  it.each([null, 5, 'x', []])('options that are %p are refused', (given) => {
    expect(() => checkKeys(given, ['retry'], '')).toThrow(InvalidOptionError);
  });

  it('inside retry and backoff are refused too', () => {
    const misspelt: object = { attempts: 3 };
    expect(() => resolveHandlerOptions({}, { retry: misspelt })).toThrow(/retry\.attempts/);
    const misspeltBackoff = { type: 'fixed' as const, delay: 5, jiter: true };
    expect(() => resolveBackoff(misspeltBackoff)).toThrow(/retry\.backoff\.jiter/);
  });
});
