import type { AdminRequest } from './admin-options.js';
import type { Permission } from './permissions.js';

/** Who sent a request, and what they may do. */
export interface Caller {
  readonly actor: string;
  readonly permissions: readonly Permission[];
}

const CALLERS = new WeakMap<object, Caller>();

export function noteCaller(request: AdminRequest, caller: Caller): void {
  CALLERS.set(request, caller);
}

/** Whom the guard of the routes has let in. */
export function callerOf(request: AdminRequest): Caller {
  const caller = CALLERS.get(request);
  if (!caller) throw new Error('The request reached a route of the admin API without its guard.');
  return caller;
}

/** Without a name for the caller, the audit says at least which way they came. */
const NOBODY = 'admin API';

/** Who it is, by what Passport and its like leave on a request. */
export function actorOf(user: unknown): string {
  if (isName(user)) return String(user);
  if (typeof user !== 'object' || user === null) return NOBODY;
  const { email, username, name, sub, id } = user as Record<string, unknown>;
  const found = [email, username, name, sub, id].find(isName);
  return found === undefined ? NOBODY : String(found);
}

function isName(value: unknown): value is string | number | bigint {
  return (typeof value === 'string' && value !== '') || typeof value === 'number' || typeof value === 'bigint';
}
