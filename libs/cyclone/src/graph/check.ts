import { looksMinified } from '../model/minified-name.js';
import { isStorable } from '../model/storable-text.js';
import type { HandlerMetadata } from './metadata.js';

/** Longest name of a node, in bytes of UTF-8. */
export const MAX_NODE_NAME_BYTES = 512;

/** Why a name cannot be the name of a node (R3), as the end of a sentence; undefined when it can. */
export function checkNodeName(name: unknown): string | undefined {
  if (typeof name !== 'string' || name === '') return 'has no name. Give it one with the option { node: … }.';
  if (/[[\]]/.test(name)) return 'may not have [ or ] in its name: the items of a fan-out are named so.';
  if (name.length * 3 > MAX_NODE_NAME_BYTES && Buffer.byteLength(name) > MAX_NODE_NAME_BYTES) {
    return `has a name of more than ${MAX_NODE_NAME_BYTES} bytes.`;
  }
  if (!isStorable(name)) return 'has a name that Postgres cannot store: U+0000 or half of a surrogate pair.';
  return undefined;
}

/** Why the kind of a handler may not be stored although it can be (R40), as the end of a sentence; undefined when it may. */
export function checkKind({ kind, nodeType, options }: HandlerMetadata): string | undefined {
  if (options.name !== undefined || kind === '' || !looksMinified(kind)) return undefined;
  const decorator = nodeType === 'step' ? 'Step' : 'Action';
  return (
    `is missing, and its method is called "${kind}", as if a build tool had renamed it. The kind is stored with every step, ` +
    `and the next build may rename another method so. Write one that stays: @${decorator}({ name: 'charge_card' }).`
  );
}
