/**
 * The SQLSTATE of an error that the server answered: of `pg`, of TypeORM, which copies the fields of the driver's error, or of a
 * DatabaseError. Undefined for anything else: codes of the network have five capitals too (`EPIPE`), but no digit and no severity.
 */
export function sqlStateOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, severity, driverError, sqlState } = error as Record<string, unknown>;
  if (typeof sqlState === 'string') return sqlState;
  if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && (typeof severity === 'string' || /\d/.test(code))) {
    return code;
  }
  return driverError === error ? undefined : sqlStateOf(driverError);
}
