/** One or two letters, `_a`, `e1`, `class_1`, `_default`: what minifiers and compilers call things. */
const MADE_BY_TOOLS =
  /^(?:[_$]+[a-z0-9]{0,2}|[a-z]{1,2}[_$]?\d+|_?(?:class|default|anonymous)_?\d+|_(?:class|default|anonymous))$/i;

/**
 * Whether an identifier looks as if a build tool had made it. The next build may give it to something else, so nothing that is stored may
 * be called by it (R40).
 */
export function looksMinified(identifier: string): boolean {
  return identifier.length < 3 || MADE_BY_TOOLS.test(identifier);
}
