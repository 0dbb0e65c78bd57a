/** What a caller of the admin API may do. Each route needs exactly one of these. */
export const PERMISSIONS = [
  'read',
  'payload:read',
  'audit:read',
  'run:cancel',
  'run:pause',
  'run:retry',
  'repair',
  'purge',
] as const;

/**
 * One right: `read` looks at runs, steps and workers without their payloads; `payload:read` at inputs, outputs and stacks; `audit:read`
 * at who did what; `run:cancel`, `run:pause` (and resume), `run:retry` (dead letters too), `repair` and `purge` change something.
 */
export type Permission = (typeof PERMISSIONS)[number];

/** `all` of them; `read`: everything that changes nothing, but no payloads; `none`; or a list. */
export type Access = 'all' | 'read' | 'none' | readonly Permission[];

const SETS: Readonly<Record<'all' | 'read' | 'none', readonly Permission[]>> = {
  all: PERMISSIONS,
  read: ['read', 'audit:read'],
  none: [],
};

/** The permissions that an answer of `access` stands for; anything that is not one grants nothing. */
export function permissionsOf(access: unknown): readonly Permission[] {
  if (Array.isArray(access)) return PERMISSIONS.filter((permission) => access.includes(permission));
  return typeof access === 'string' && Object.hasOwn(SETS, access) ? SETS[access as keyof typeof SETS] : [];
}
