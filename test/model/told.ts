import type { Told } from './operations.js';

/** The engine cannot have answered this, or not have done what it answered. */
export class Impossible extends Error {}

export function expectSame(what: string, told: readonly string[], expected: readonly string[]): void {
  const [a, b] = [told.toSorted().join(), expected.toSorted().join()];
  if (a !== b) throw new Impossible(`${what}: told [${a}], expected [${b}]`);
}

/** Whether the operation was refused; throws unless it was refused for this reason, or not when there is none. */
export function expectRefusal(told: readonly Told[], reason: string | undefined): boolean {
  const refusal = told.find(({ event }) => event === 'refused')?.reason;
  if (refusal !== reason) throw new Impossible(`refused as ${refusal}, expected ${reason}`);
  return refusal !== undefined;
}
