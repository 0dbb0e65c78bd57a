/** Longest error text that is stored, in bytes (R16). */
export const MAX_ERROR_BYTES = 8 * 1024;

/** Longest stack that is stored, in bytes (R16). */
export const MAX_STACK_BYTES = 32 * 1024;

const ELLIPSIS = '…';
const ELLIPSIS_BYTES = Buffer.byteLength(ELLIPSIS);

/** Whether Postgres can store a text as it is: no U+0000, no half of a surrogate pair. */
export function isStorable(text: string): boolean {
  return !/\u0000|\p{Surrogate}/u.test(text);
}

/** The same text in characters that every encoding of a database has: the others are written as escapes. */
export function asciiText(text: string): string {
  return text.replace(/[^\n\t -~]/gu, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/** Text that Postgres can store (R16): U+0000 and lone surrogates become U+FFFD, and it ends after `maxBytes` of UTF-8. */
export function storableText(text: string, maxBytes: number): string {
  // One unit is at least one byte, so the rest of a huge text need not be looked at.
  const head = text.length > maxBytes ? text.slice(0, maxBytes + 1) : text;
  const clean = head.replace(/\u0000|\p{Surrogate}/gu, '\ufffd');
  if (Buffer.byteLength(clean) <= maxBytes) return clean;
  const bytes = Buffer.from(clean);
  let end = maxBytes - ELLIPSIS_BYTES;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--; // not inside a character
  return bytes.toString('utf8', 0, end) + ELLIPSIS;
}
