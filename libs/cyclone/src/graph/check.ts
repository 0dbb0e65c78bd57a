import { isStorable } from '../model/storable-text.js';

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
