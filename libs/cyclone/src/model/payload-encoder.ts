import { types } from 'node:util';
import { InvalidPayloadError, PayloadTooLargeError } from './errors/graph-errors.js';
import { hasOwnData, lossOf } from './lossy-value.js';

/** The largest value of a handler or caller, in bytes of UTF-8 (R36). */
export const DEFAULT_MAX_PAYLOAD_BYTES = 1024 * 1024;

/** How many containers deep a value may be (R36). */
export const MAX_PAYLOAD_DEPTH = 100;

export interface EncodeOptions {
  /** In bytes of UTF-8. @default 1 MiB */
  readonly maxBytes?: number;
  /** What to call the value in errors. @default 'value' */
  readonly path?: string;
  /** The node whose input it is, for errors. */
  readonly node?: string;
  /** How many levels of `MAX_PAYLOAD_DEPTH` are used up around the value. @default 0 */
  readonly depth?: number;
}

/** Quotes, backslashes and controls, which need an escape, and surrogates, which need a look. */
const SPECIAL = /["\\\u0000-\u001f\ud800-\udfff]/;
const LONE_SURROGATE = /\p{Surrogate}/u;
const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;

type Key = string | number;

/**
 * Writes JSON in one walk that reads each property once, so what was checked is what is stored, and knows the path of what it
 * refuses. Bounded in depth and in size, whatever it is given.
 */
export class CarefulEncoder {
  /** The containers that the walk is in, and the keys that led from each to the next. */
  private readonly holders: object[] = [];
  private readonly keys: Key[] = [];
  private key: Key | undefined;
  /** Characters left; characters are never more than bytes, so below zero the value is too large for certain. */
  private left: number;
  private readonly maxDepth: number;

  constructor(
    private readonly options: EncodeOptions,
    private readonly maxBytes = options.maxBytes ?? DEFAULT_MAX_PAYLOAD_BYTES,
  ) {
    this.left = maxBytes;
    this.maxDepth = MAX_PAYLOAD_DEPTH - (options.depth ?? 0);
  }

  encode(value: unknown): string {
    try {
      const text = this.text(value) ?? 'null';
      if (Buffer.byteLength(text) > this.maxBytes) throw this.tooLarge();
      return text;
    } catch (error) {
      if (InvalidPayloadError.is(error) || PayloadTooLargeError.is(error)) throw error;
      throw this.invalid('cannot be read: a getter, a toJSON() or a proxy threw. Pass plain data.', error);
    }
  }

  private tooLarge(): PayloadTooLargeError {
    return new PayloadTooLargeError(this.options.path ?? 'value', this.maxBytes, this.options.node);
  }

  /** JSON of one value; undefined for `undefined`. */
  private text(value: unknown): string | undefined {
    switch (typeof value) {
      case 'string':
        return this.string(value);
      case 'number':
        if (!Number.isFinite(value))
          throw this.invalid(`is ${value}, which JSON cannot hold. Pass a finite number or null.`);
        return `${value}`;
      case 'boolean':
        return value ? 'true' : 'false';
      case 'undefined':
        return undefined;
      case 'object':
        return value === null ? 'null' : this.object(value);
      case 'bigint':
        throw this.invalid('is a BigInt, which JSON cannot hold. Pass it as a string.');
      default:
        throw this.invalid(`is a ${typeof value}, which JSON cannot hold. Leave it out or pass data in its place.`);
    }
  }

  private string(value: string): string {
    if ((this.left -= value.length) < 0) throw this.tooLarge();
    return SPECIAL.test(value) ? this.escaped(value, 'holds') : `"${value}"`;
  }

  private escaped(value: string, verb: string): string {
    if (value.includes('\u0000'))
      throw this.invalid(`${verb} the character U+0000, which Postgres cannot store. Remove it.`);
    if (LONE_SURROGATE.test(value)) {
      throw this.invalid(
        `${verb} half of a surrogate pair, which Postgres cannot store. Cut strings between whole characters.`,
      );
    }
    return JSON.stringify(value);
  }

  private object(value: object): string | undefined {
    const toJSON = (value as { toJSON?: unknown }).toJSON;
    if (typeof toJSON === 'function') {
      if (types.isDate(value) && Number.isNaN(value.getTime()))
        throw this.invalid('is an invalid Date. Pass a valid one or null.');
      const replaced: unknown = toJSON.call(value, this.key === undefined ? '' : `${this.key}`);
      // As in JSON.stringify, the replacement's own toJSON is not asked again.
      return typeof replaced === 'object' && replaced !== null ? this.container(replaced) : this.text(replaced);
    }
    return this.container(value);
  }

  private container(value: object): string | undefined {
    const prototype: unknown = Object.getPrototypeOf(value);
    const isArray = Array.isArray(value);
    if (!isArray) {
      const isPlain = prototype === Object.prototype || prototype === null;
      if (!isPlain && types.isBoxedPrimitive(value)) return this.text(value.valueOf());
      const loss = isPlain && hasOwnData(value) ? undefined : lossOf(value);
      if (loss !== undefined) throw this.invalid(loss);
    }
    if (this.holders.length >= this.maxDepth) throw this.tooDeep(value);
    this.holders.push(value);
    if (this.key !== undefined) this.keys.push(this.key);
    this.key = undefined;
    const text = isArray ? this.array(value) : this.properties(value as Record<string, unknown>);
    this.holders.pop();
    this.key = this.keys.pop();
    return text;
  }

  private array(value: readonly unknown[]): string {
    let text = '';
    for (let index = 0; index < value.length; index++) {
      this.key = index;
      if (--this.left < 0) throw this.tooLarge();
      const item = this.text(value[index]) ?? 'null';
      text += index === 0 ? item : `,${item}`;
    }
    return `[${text}]`;
  }

  private properties(value: Record<string, unknown>): string {
    let text = '';
    for (const key of Object.keys(value)) {
      this.key = key;
      const item = this.text(value[key]);
      if (item === undefined) continue;
      if ((this.left -= key.length + 3) < 0) throw this.tooLarge();
      const name = SPECIAL.test(key) ? this.escaped(key, 'has a name that holds') : `"${key}"`;
      text += text === '' ? `${name}:${item}` : `,${name}:${item}`;
    }
    return `{${text}}`;
  }

  private tooDeep(value: object): InvalidPayloadError {
    const cycle = [...this.holders, value].findIndex((holder, index, all) => all.indexOf(holder) < index);
    if (cycle >= 0) {
      this.keys.length = Math.min(cycle, this.keys.length);
      if (cycle < this.holders.length) this.key = undefined;
      return this.invalid('refers back to a value that contains it. Break the cycle.');
    }
    return this.invalid(`is nested deeper than ${MAX_PAYLOAD_DEPTH} levels. Flatten it.`);
  }

  private invalid(problem: string, cause?: unknown): InvalidPayloadError {
    const keys = this.key === undefined ? this.keys : [...this.keys, this.key];
    const path = keys.reduce<string>((at, key) => `${at}${step(key)}`, this.options.path ?? 'value');
    return new InvalidPayloadError(path, problem, this.options.node, cause === undefined ? undefined : { cause });
  }
}

function step(key: Key): string {
  if (typeof key === 'number') return `[${key}]`;
  return IDENTIFIER.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}
