import { InvalidOptionError } from '../../model/errors/setup-errors.js';
import type { HandlerOptions } from '../../model/options.js';
import { className, setHandlerMetadata } from '../../graph/metadata.js';
import { hasConstraints } from '../../client/payload-validation.js';

/** Notes what a decorator says. Options are checked at the start of the application, which lists all problems at once (R22). */
export function declareHandler(
  nodeType: 'step' | 'action',
  prototype: object,
  key: string | symbol,
  options: HandlerOptions = {},
): void {
  const decorator = `@${nodeType === 'step' ? 'Step' : 'Action'}()`;
  if (typeof prototype === 'function') {
    throw new InvalidOptionError(
      `${decorator} on ${prototype.name}.${String(key)}`,
      'must stand on a method of instances, not on a static one.',
    );
  }
  if (typeof options !== 'object' || options === null) {
    throw new InvalidOptionError(
      `${decorator} on ${className(prototype)}.${String(key)}`,
      'takes an object of options.',
    );
  }
  setHandlerMetadata(prototype, key, {
    kind: options.name ?? (typeof key === 'string' ? key : ''),
    nodeType,
    options: withInput(prototype, key, options),
    owner: `${className(prototype)}.${String(key)}`,
  });
}

/** A parameter whose class has constraints needs no `input` option: TypeScript has noted the class (R37). */
function withInput(prototype: object, key: string | symbol, options: HandlerOptions): HandlerOptions {
  if (options.input !== undefined) return options;
  const [input] = (Reflect.getMetadata('design:paramtypes', prototype, key) as unknown[] | undefined) ?? [];
  return hasConstraints(input) ? { ...options, input } : options;
}
