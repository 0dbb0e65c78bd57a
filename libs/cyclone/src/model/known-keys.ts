import { InvalidOptionError } from './errors/setup-errors.js';

/**
 * Refuses a misspelt option, which would else be ignored in silence. The compiler sees most of them, but not in JavaScript.
 * @param option what the object is called in errors; '' for the options themselves
 * @throws InvalidOptionError for a value that is no object, and for a key that is none of `known`
 */
export function checkKeys(given: unknown, known: readonly string[], option: string, subject = ''): void {
  if (given === undefined) return;
  const place = subject === '' ? '' : ` of ${subject}`;
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new InvalidOptionError(
      `${option === '' ? 'options' : option}${place}`,
      `must be an object of ${known.join(', ')}.`,
    );
  }
  for (const key of Object.keys(given)) {
    if (known.includes(key)) continue;
    const name = option === '' ? key : `${option}.${key}`;
    throw new InvalidOptionError(`${name}${place}`, `is no option here. Known are ${known.join(', ')}.`);
  }
}
