import { CarefulEncoder, DEFAULT_MAX_PAYLOAD_BYTES, MAX_PAYLOAD_DEPTH, type EncodeOptions } from './payload-encoder.js';

export { DEFAULT_MAX_PAYLOAD_BYTES, MAX_PAYLOAD_DEPTH, type EncodeOptions };

/**
 * JSON text of a value as the database stores it (R36). `undefined` properties are dropped, `undefined` alone and in arrays
 * becomes null, and `toJSON` is honoured, as `JSON.stringify` does. Unlike it, nothing is lost in silence.
 * @throws InvalidPayloadError for what JSON or Postgres cannot hold, with its path
 * @throws PayloadTooLargeError over `maxBytes`
 */
export function encodePayload(value: unknown, options: EncodeOptions = {}): string {
  return encodePlain(value, options) ?? new CarefulEncoder(options).encode(value);
}

/** The value of a JSON text from the database. A property named `__proto__` is an own property like any other. */
export function decodePayload(text: string): unknown {
  return JSON.parse(text) as unknown;
}

/** How JSON.stringify writes U+0000 and lone surrogates; also matches some innocent texts with backslashes. */
const SUSPECT_ESCAPE = /\\u(?:0000|d[89a-f])/;

/**
 * The native encoder is twice as fast as the careful one but tells nothing: it serves values that a glance finds harmless, which
 * is nearly all of them, and undefined sends the rest to the careful one.
 */
function encodePlain(value: unknown, options: EncodeOptions): string | undefined {
  const maxBytes = options.maxBytes ?? DEFAULT_MAX_PAYLOAD_BYTES;
  try {
    if (plainSize(value, MAX_PAYLOAD_DEPTH - (options.depth ?? 0), maxBytes) > maxBytes) return undefined;
    const text = JSON.stringify(value) as string | undefined;
    // A UTF-16 unit is at most three bytes of UTF-8, so the usual small value needs no count.
    if (
      text === undefined ||
      SUSPECT_ESCAPE.test(text) ||
      (text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes)
    ) {
      return undefined;
    }
    return text;
  } catch {
    return undefined; // a getter or a proxy threw; the careful encoder says where
  }
}

/** Infinity when the value needs care, else a number that its JSON is not shorter than. It stops soon after `limit`. */
function plainSize(value: unknown, depth: number, limit: number): number {
  switch (typeof value) {
    case 'string':
      return value.length;
    case 'number':
      return Number.isFinite(value) ? 1 : Infinity;
    case 'boolean':
    case 'undefined':
      return 1;
    case 'object':
      return value === null ? 1 : containerSize(value, depth, limit);
    default:
      return Infinity;
  }
}

function containerSize(value: object, depth: number, limit: number): number {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Date.prototype)
    return Number.isNaN((value as Date).getTime()) || Object.hasOwn(value, 'toJSON') ? Infinity : 1;
  if ((value as { toJSON?: unknown }).toJSON !== undefined || depth === 0) return Infinity;
  let size = 1;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && size <= limit; index++)
      size += 1 + plainSize(value[index], depth - 1, limit);
  } else if (prototype === Object.prototype || prototype === null) {
    // Not Object.keys: it costs an allocation, and what else a loop over a plain object could see does no harm here.
    for (const key in value) {
      size += plainSize((value as Record<string, unknown>)[key], depth - 1, limit);
      if (size > limit) break;
    }
    // What an iterable without properties holds would be lost.
    if (size === 1 && (Symbol.iterator in value || Symbol.asyncIterator in value)) return Infinity;
  } else {
    return Infinity;
  }
  return size;
}
