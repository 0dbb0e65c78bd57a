import { createHash } from 'node:crypto';

// Order matters: what a later pattern would cut into pieces comes first.
const VOLATILE: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '#'],
  [/"[^"]*"|`[^`]*`|(?<!\w)'[^']*'(?!\w)/g, '?'],
  [/\b(?:0x)?(?=[a-f]*\d)[0-9a-f]{8,}\b/gi, '#'],
  [/[-+]?\d+(?:[.,:]\d+)*/g, '#'],
];

/**
 * Groups failures of one cause: the same kind, error kind and message, whatever numbers, ids and quoted values the message holds.
 * @returns 16 hex digits
 */
export function errorFingerprint(failure: {
  readonly kind: string;
  readonly errorKind: string;
  readonly error: string;
}): string {
  let pattern = failure.error;
  for (const [volatile, blank] of VOLATILE) pattern = pattern.replace(volatile, blank);
  return createHash('sha256')
    .update(JSON.stringify([failure.kind, failure.errorKind, pattern]))
    .digest('hex')
    .slice(0, 16);
}
