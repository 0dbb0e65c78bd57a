/**
 * Errors that pass by themselves: serialization and deadlock (40), lock timeouts and cancelled statements, a server that is short
 * of something (53) or being administered (57), a connection problem (08), an internal error (XX).
 */
const TRANSIENT = /^(?:40|53|57|08|XX|55P03|25006)/;

/** Whether to try the same again makes sense. */
export function isTransient(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code !== 'string' || TRANSIENT.test(code);
}

/** Whether a lock was not to be had in time. */
export function isLockTimeout(error: unknown): boolean {
  return (error as { code?: unknown }).code === '55P03';
}
