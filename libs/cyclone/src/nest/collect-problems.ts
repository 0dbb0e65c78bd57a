import { CycloneError } from '../model/errors/cyclone-error.js';
import { InvalidOptionError } from '../model/errors/setup-errors.js';

/** Runs a check and notes what it throws on purpose, so that the start can list all problems at once (R22). */
export function collect<T>(problems: CycloneError[], check: () => T): T | undefined {
  try {
    return check();
  } catch (error) {
    if (!CycloneError.is(error)) throw error;
    problems.push(error);
    return undefined;
  }
}

/**
 * Checks options one by one, so that each wrong one is noted, and refuses those that nobody knows.
 * @param prefix the path of the options for messages, `''` or `'worker.'`
 * @param suffix whom they belong to, for messages: `' of OrderSteps.charge'`
 * @param check is called with an object that has one option only
 */
export function checkEach<T extends object>(
  problems: CycloneError[],
  options: T,
  known: readonly (keyof T & string)[],
  check: (option: Partial<T>) => unknown,
  { prefix = '', suffix = '' } = {},
): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    problems.push(new InvalidOptionError(`${prefix.replace(/\.$/, '') || 'options'}${suffix}`, 'must be an object.'));
    return;
  }
  for (const key of Object.keys(options) as (keyof T & string)[]) {
    if (!known.includes(key)) {
      problems.push(new InvalidOptionError(`${prefix}${key}${suffix}`, `is not known. Known are ${known.join(', ')}.`));
    } else if (options[key] !== undefined) {
      collect(problems, () => check({ [key]: options[key] } as Partial<T>));
    }
  }
}
