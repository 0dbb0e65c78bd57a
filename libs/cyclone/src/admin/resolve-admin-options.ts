import type { CycloneError } from '../model/errors/cyclone-error.js';
import { InvalidOptionError } from '../model/errors/setup-errors.js';
import { checkEach } from '../nest/collect-problems.js';
import type { CycloneAdminOptions, ResolvedAdminOptions } from './admin-options.js';

const OPTIONS = [
  'path',
  'guards',
  'imports',
  'access',
  'getUser',
  'readOnly',
  'redact',
  'insecure',
  'name',
] as const satisfies readonly (keyof CycloneAdminOptions)[];

const PATH = /^\/?[\w.~-]+(?:\/[\w.~-]+)*\/?$/;

/** Options with their defaults, and all that is wrong with them: then they open nothing. */
export function resolveAdminOptions(given: CycloneAdminOptions | undefined): {
  readonly options: ResolvedAdminOptions;
  readonly problems: readonly CycloneError[];
} {
  const problems: CycloneError[] = [];
  const options = given ?? {};
  checkEach<CycloneAdminOptions>(problems, options, OPTIONS, checkOption);
  const { guards = [], insecure = false } = options;
  if (guards.length === 0 && !insecure) {
    problems.push(
      new InvalidOptionError(
        'guards',
        'of CycloneAdminModule are missing: whoever reaches these routes can cancel runs. Pass guards: [YourGuard], ' +
          'or insecure: true on a machine that nobody else reaches.',
      ),
    );
  }
  const whole = problems.length === 0;
  return {
    problems,
    options: {
      path: (whole ? (options.path ?? 'cyclone') : 'cyclone').replace(/^\/|\/$/g, ''),
      guards: whole ? guards : [{ canActivate: () => false }],
      readOnly: options.readOnly ?? false,
      name: whole ? options.name : undefined,
      ...(whole && options.access ? { access: options.access } : {}),
      ...(whole && options.getUser ? { getUser: options.getUser } : {}),
      ...(whole && options.redact ? { redact: options.redact } : {}),
    },
  };
}

function checkOption(one: Partial<CycloneAdminOptions>): void {
  const { path, guards, name, imports } = one;
  if (path !== undefined && (typeof path !== 'string' || !PATH.test(path) || /(^|\/)\.\.?(\/|$)/.test(path))) {
    // At '/' the routes of the application would be among them.
    throw new InvalidOptionError('path', "must be a path like 'admin' or 'internal/cyclone', without parameters.");
  }
  if (guards !== undefined && !(Array.isArray(guards) && guards.every(isGuard))) {
    throw new InvalidOptionError('guards', 'must be an array of Nest guards: classes or objects with canActivate().');
  }
  if (imports !== undefined && !Array.isArray(imports)) {
    throw new InvalidOptionError('imports', 'must be an array of modules.');
  }
  if (name !== undefined && (typeof name !== 'string' || name === '')) {
    throw new InvalidOptionError('name', 'must be a text that is not empty.');
  }
  for (const flag of ['readOnly', 'insecure'] as const) {
    if (one[flag] !== undefined && typeof one[flag] !== 'boolean') {
      throw new InvalidOptionError(flag, 'must be true or false.');
    }
  }
  for (const hook of ['access', 'getUser', 'redact'] as const) {
    if (one[hook] !== undefined && typeof one[hook] !== 'function') {
      throw new InvalidOptionError(hook, 'must be a function.');
    }
  }
}

function isGuard(guard: unknown): boolean {
  if (typeof guard === 'function')
    return typeof (guard.prototype as { canActivate?: unknown })?.canActivate === 'function';
  return typeof (guard as { canActivate?: unknown } | null)?.canActivate === 'function';
}
