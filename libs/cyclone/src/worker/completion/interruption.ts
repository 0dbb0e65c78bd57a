/**
 * What interrupted a completion transaction, in the server's own words where there are any (R39).
 * @param how what became of the transaction, as a predicate: `lost its connection`
 */
export function describeInterruption(how: string, error: unknown): Error {
  const why = error instanceof Error ? error.message : String(error);
  return new Error(`The completion transaction ${how}: ${why}`, { cause: error });
}
