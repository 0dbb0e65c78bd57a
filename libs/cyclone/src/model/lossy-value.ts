import { types } from 'node:util';

const WEAK = 'is a weak collection, which JSON cannot hold. Pass the data itself.';
const ITERABLE = 'is an iterable, of which JSON keeps nothing. Pass an array: [...value].';
const PROMISE = 'is a promise. Await it first.';
const STREAM = 'is a stream, which has not been read. Read it to its end, and return what came of it.';
const BODY = 'whose body has not been read. Pass await response.json(), or what you need of it.';
const BINARY =
  "is binary data, which JSON cannot hold. Pass Buffer.from(data).toString('base64') or [...numbers], or store it elsewhere and pass a reference.";
const ERROR = 'is an Error, of which JSON drops the message. Pass { name: error.name, message: error.message }.';
const ENTRIES = 'of which JSON keeps nothing. Pass Object.fromEntries(value).';

/** By the tag of `Object.prototype.toString`, which is the same in every realm. */
const BY_TAG: Readonly<Record<string, string>> = {
  Map: 'is a Map, which JSON cannot hold. Pass Object.fromEntries(map) or an array.',
  Set: 'is a Set, which JSON cannot hold. Pass [...set].',
  Promise: PROMISE,
  WeakMap: WEAK,
  WeakSet: WEAK,
  WeakRef: WEAK,
  FinalizationRegistry: WEAK,
  Error: ERROR,
  DOMException: ERROR,
  RegExp: 'is a RegExp, of which JSON keeps nothing. Pass regexp.source.',
  ArrayBuffer: BINARY,
  SharedArrayBuffer: BINARY,
  DataView: BINARY,
  Blob: BINARY,
  File: BINARY,
  Headers: `is a Headers, ${ENTRIES}`,
  URLSearchParams: `is a URLSearchParams, ${ENTRIES}`,
  FormData: `is a FormData, ${ENTRIES}`,
  Response: `is a Response, ${BODY}`,
  Request: `is a Request, ${BODY}`,
  ReadableStream: STREAM,
  WritableStream: STREAM,
  TransformStream: STREAM,
};

/** Classes whose instances with properties of their own are kept by JSON: one look at a class is enough. */
const harmless = new WeakSet<object>();

/**
 * Why JSON would lose what an object is, and what to pass in its place; undefined where JSON keeps it: an instance of a class with data of
 * its own. Asked only for what is neither an array nor has a toJSON().
 */
export function lossOf(value: object): string | undefined {
  const tag = Object.prototype.toString.call(value);
  const prototype = Object.getPrototypeOf(value) as object | null;
  const isKnown = prototype !== null && harmless.has(prototype);
  if (isKnown && tag === '[object Object]' && hasOwnData(value)) return undefined;
  const loss = lossByTag(value, tag.slice(8, -1)) ?? unfinished(value) ?? hiddenIn(value);
  if (loss === undefined && prototype !== null) harmless.add(prototype);
  return loss;
}

function lossByTag(value: object, tag: string): string | undefined {
  if (tag === 'Object') return undefined;
  if (Object.hasOwn(BY_TAG, tag)) return BY_TAG[tag];
  if (tag.startsWith('Intl.')) return `is an ${tag}, of which JSON keeps nothing. Pass value.resolvedOptions().`;
  // A subclass may give itself a tag of its own.
  if (ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value)) return BINARY;
  if (types.isNativeError(value)) return ERROR;
  if (types.isMap(value)) return BY_TAG['Map'];
  if (types.isSet(value)) return BY_TAG['Set'];
  return types.isWeakMap(value) || types.isWeakSet(value) ? WEAK : undefined;
}

/** An Observable of any copy of rxjs. */
export interface ObservableLike {
  subscribe(observer: { next(value: unknown): void; error(error: unknown): void; complete(): void }): {
    unsubscribe(): void;
  };
}

export function isObservable(value: unknown): value is ObservableLike {
  return typeof value === 'object' && value !== null && has(value, 'subscribe') && has(value, 'pipe');
}

/**
 * Why an object is work that has not been done yet and not a result, and what to do; undefined for anything else. A handler that returns
 * one would be taken for completed.
 */
export function unfinished(value: object): string | undefined {
  if (has(value, 'then')) return PROMISE;
  if (isObservable(value)) return 'is an Observable. Pass its value: await firstValueFrom(observable).';
  if (has(value, Symbol.asyncIterator) || has(value, 'getReader') || (has(value, 'pipe') && has(value, 'on'))) {
    return types.isGeneratorObject(value) ? generator('for await (const item of …)') : STREAM;
  }
  if (has(value, 'next') && has(value, Symbol.iterator)) {
    return types.isGeneratorObject(value) ? generator('[...generator]') : ITERABLE;
  }
  return undefined;
}

function generator(how: string): string {
  return `is a generator, whose body has not run. Run it with ${how} and return an array of what it yields.`;
}

/** Data that only the class itself can read: JSON would make `{}` of it. */
function hiddenIn(value: object): string | undefined {
  if (has(value, Symbol.iterator)) return ITERABLE;
  if (hasOwnData(value)) return undefined;
  for (
    let level = Object.getPrototypeOf(value) as object | null;
    level !== null && !Object.hasOwn(level, 'hasOwnProperty');
    level = Object.getPrototypeOf(level) as object | null
  ) {
    const members = Object.entries(Object.getOwnPropertyDescriptors(level));
    if (members.some(([name, { get }]) => get !== undefined || name === 'toString' || name === 'valueOf')) {
      return `is a ${nameOf(level)} without properties of its own, and JSON does not see what it holds. Give the class a toJSON(), or pass plain data.`;
    }
  }
  return undefined;
}

/** Whether JSON would find a property. */
export function hasOwnData(value: object): boolean {
  for (const key in value) if (Object.hasOwn(value, key)) return true;
  return false;
}

function has(value: object, key: string | symbol): boolean {
  return typeof (value as Record<string | symbol, unknown>)[key] === 'function';
}

function nameOf(prototype: object): string {
  const constructor: unknown = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value;
  return typeof constructor === 'function' && constructor.name !== '' ? constructor.name : 'class instance';
}
