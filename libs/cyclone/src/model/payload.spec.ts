import { Readable } from 'node:stream';
import { runInNewContext } from 'node:vm';
import { Observable } from 'rxjs';
import { InvalidPayloadError, PayloadTooLargeError } from './errors/index.js';
import { CarefulEncoder } from './payload-encoder.js';
import { decodePayload, encodePayload } from './payload.js';

class Money {
  constructor(
    readonly amount: number,
    private readonly currency: string,
  ) {}
  toString(): string {
    return `${this.amount} ${this.currency}`;
  }
}

class Filter {
  declare status?: string;
  matches(): boolean {
    return this.status === undefined;
  }
}

class Discount extends Money {
  #rate = 2;
  get total(): number {
    return this.amount * this.#rate;
  }
}

/** Like URL, but without its toJSON. */
class Secretive {
  #href = 'https://a.example';
  get href(): string {
    return this.#href;
  }
}

class Euro {
  #cents = 5;
  toString(): string {
    return `${this.#cents} cents`;
  }
}

class OddMap extends Map {
  override get [Symbol.toStringTag](): string {
    return 'Odd';
  }
}

class Failure extends Error {
  readonly code = 'E_FAILED';
}

const nested = (levels: number): unknown => {
  let value: unknown = [];
  for (let level = 1; level < levels; level++) value = level % 2 ? { inner: value } : [value];
  return value;
};

/** What the thrown error says about the place and the fault. */
function refusal(value: unknown, options = {}): { path: string; problem: string } {
  try {
    encodePayload(value, options);
  } catch (error) {
    if (InvalidPayloadError.is(error)) return { path: error.path, problem: error.problem };
    throw error;
  }
  throw new Error('it was not refused');
}

describe('a payload that JSON can hold', () => {
  const cases: [string, unknown][] = [
    ['an object', { id: 'o1', total: 12.5, paid: false, note: null, lines: [{ sku: 'a', quantity: 1 }, { sku: 'b' }] }],
    ['a string that looks like JSON (S30)', '{"a":1}'],
    ['a string with quotes, controls and backslashes', 'a"b\\c\n\t\u0001 \\u0000 \\ud800 \u2028'],
    ['characters outside the basic plane', { '😀': '😀 and é' }],
    ['numbers', [0, -0, 1e21, 5e-324, 2 ** 53 + 2, -1.5]],
    ['undefined properties, which are dropped', { a: undefined, b: 1, c: undefined }],
    ['undefined and holes in arrays, which become null', [undefined, ...Array(1), 1].concat(Array(2))],
    ['a Date, which becomes an ISO string', { at: new Date(0) }],
    [
      'an object with toJSON',
      { when: { toJSON: () => ({ iso: 'x', dropped: undefined }) }, gone: { toJSON: () => undefined } },
    ],
    ['toJSON that wants its key', { amount: { toJSON: (key: string) => `key ${key}` } }],
    ['a class instance', new Money(5, 'usd')],
    ['an instance of a class without data (F5)', Object.create({ method: () => 1 })],
    ['an instance whose optional properties are not set (F5)', new Filter()],
    ['an instance of a subclass, with a getter and a private field (F5)', new Discount(5, 'usd')],
    ['a message that has the members of an Error (F5)', { name: 'a', message: 'b', stack: 'c' }],
    ['a URL and a Buffer, which have a toJSON (F5)', [new URL('https://a.example/b'), Buffer.from('ab')]],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 })],
    ['an object of another realm', runInNewContext('({ a: [1, { b: "x" }], d: new Date(0) })')],
    ['boxed primitives', [Object('text'), Object(5), Object(true)]],
    ['keys that need escapes', { 'a"b': 1, '': 2, 'x\ny': 3 }],
    ['symbol keys, which are ignored', { a: 1, [Symbol('s')]: 2 }],
    ['a shared reference, which is no cycle', ((shared) => [shared, { shared }])({ a: 1 })],
    ['100 levels', nested(100)],
    ['an empty object and list', [{}, []]],
  ];

  it.each(cases)('is written as JSON.stringify does: %s (R36)', (_name, value) => {
    expect(encodePayload(value)).toBe(JSON.stringify(value));
    expect(new CarefulEncoder({}).encode(value)).toBe(JSON.stringify(value));
  });

  it('is null for undefined alone (R36)', () => expect(encodePayload(undefined)).toBe('null'));

  it('keeps a property called __proto__ or constructor as data (R36)', () => {
    const hostile: unknown = JSON.parse('{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}');
    const text = encodePayload(hostile);
    expect(text).toBe('{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}');
    const back = decodePayload(text) as object;
    expect(Object.hasOwn(back, '__proto__')).toBe(true);
    expect(Object.getPrototypeOf(back)).toBe(Object.prototype);
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });
});

describe('a payload is refused with its path (R36, S7, S8)', () => {
  const cyclic: Record<string, unknown> = { list: [] };
  (cyclic['list'] as unknown[]).push({ parent: cyclic });

  it.each<[string, unknown, string, RegExp]>([
    ['a BigInt', { lines: [{ price: 1n }] }, 'value.lines[0].price', /BigInt/],
    ['a function', { run: () => 1 }, 'value.run', /function/],
    ['a symbol', [Symbol('s')], 'value[0]', /symbol/],
    ['NaN', { rates: { usd: NaN } }, 'value.rates.usd', /NaN/],
    ['Infinity', [1, Infinity], 'value[1]', /Infinity/],
    ['minus Infinity', -Infinity, 'value', /-Infinity/],
    ['U+0000 in a value', { a: 'x\u0000y' }, 'value.a', /U\+0000/],
    ['U+0000 in a key', { a: { 'x\u0000': 1 } }, 'value.a["x\\u0000"]', /name.*U\+0000/],
    ['a lone high surrogate', { a: 'x\ud83d' }, 'value.a', /surrogate/],
    ['a lone low surrogate', ['\ude00y'], 'value[0]', /surrogate/],
    ['a lone surrogate in a key', { '\ud83d': 1 }, 'value["\\ud83d"]', /name.*surrogate/],
    ['a Map', { m: new Map() }, 'value.m', /Map/],
    ['a Set', { s: new Set([1]) }, 'value.s', /Set/],
    ['a Map of another realm', { m: runInNewContext('new Map()') as unknown }, 'value.m', /Map/],
    ['a promise somebody forgot to await', { p: Promise.resolve(1) }, 'value.p', /Await/],
    ['a WeakMap', { w: new WeakMap() }, 'value.w', /weak/],
    ['an invalid Date', { at: new Date(NaN) }, 'value.at', /invalid Date/],
    ['a boxed BigInt', { n: Object(1n) as unknown }, 'value.n', /BigInt/],
    ['toJSON that returns a BigInt', { m: { toJSON: () => 1n } }, 'value.m', /BigInt/],
    ['a key that is no identifier', { 'a b': { 'c-d': NaN } }, 'value["a b"]["c-d"]', /NaN/],
    ['something after a nested value', { a: { b: [1] }, c: NaN }, 'value.c', /NaN/],
  ])('%s', (_name, value, path, problem) => {
    const found = refusal(value);
    expect(found.path).toBe(path);
    expect(found.problem).toMatch(problem);
  });

  const request = new Request('https://a.example', { method: 'POST', body: 'x' });
  it.each<[string, unknown, RegExp]>([
    ['an Error', new Error('no'), /an Error.*{ name: error.name, message: error.message }/],
    ['an Error with properties', new Failure('no'), /an Error/],
    ['an Error of another realm', runInNewContext('new TypeError("no")'), /an Error/],
    ['an AggregateError', new AggregateError([new Error('no')]), /an Error/],
    ['a DOMException', new DOMException('no', 'AbortError'), /an Error/],
    ['a RegExp', /x/u, /RegExp.*source/],
    ['a RegExp of another realm', runInNewContext('/x/'), /RegExp/],
    ['a typed array', new Uint8Array([1]), /binary.*base64/],
    ['a typed array of another realm', runInNewContext('new Float64Array([1])'), /binary/],
    ['an ArrayBuffer', new ArrayBuffer(1), /binary/],
    ['a SharedArrayBuffer', new SharedArrayBuffer(1), /binary/],
    ['a DataView', new DataView(new ArrayBuffer(1)), /binary/],
    ['a Blob', new Blob(['x']), /binary/],
    ['a WeakRef', new WeakRef({}), /weak/],
    ['Headers', new Headers({ a: 'b' }), /Headers.*Object\.fromEntries/],
    ['URLSearchParams', new URLSearchParams('a=b'), /URLSearchParams.*Object\.fromEntries/],
    ['FormData', new FormData(), /FormData.*Object\.fromEntries/],
    ['a Response', new Response('x'), /Response.*response\.json\(\)/],
    ['a Request', request, /Request/],
    ['a ReadableStream', new ReadableStream(), /stream.*has not been read/],
    ['a stream of Node', Readable.from(['x']), /stream.*has not been read/],
    ['a generator', (function* () {})(), /generator, whose body has not run/],
    ['an async generator', (async function* () {})(), /generator, whose body has not run.*for await/],
    ['an iterator of an array', [1].values(), /iterable.*\[\.\.\.value\]/],
    ['an iterator of a Map', new Map().entries(), /iterable/],
    ['an iterable object', { *[Symbol.iterator]() {} }, /iterable/],
    ['an async iterable object', { async *[Symbol.asyncIterator]() {} }, /stream/],
    ['a subclass of Map with a tag of its own', new OddMap(), /Map/],
    ['a date format', new Intl.DateTimeFormat('en'), /Intl\.DateTimeFormat.*resolvedOptions/],
    ['plural rules', new Intl.PluralRules('en'), /Intl\.PluralRules/],
    ['an Observable', new Observable(), /Observable.*firstValueFrom/],
    [
      'a query that is a thenable',
      new (class Query {
        // oxlint-disable-next-line unicorn/no-thenable -- query builders are
        then(): void {}
      })(),
      /Await/,
    ],
    ['a class whose data is behind getters', new Secretive(), /Secretive without properties of its own.*toJSON/],
    ['a class whose data only toString() shows', new Euro(), /Euro without properties of its own/],
    ['an AbortSignal', new AbortController().signal, /AbortSignal without properties/],
    ['what a toJSON() returned', { toJSON: () => new Error('no') }, /an Error/],
  ])('%s, of which JSON would keep nothing or little (F5)', (_name, value, problem) => {
    expect(refusal({ list: [1, { it: value }] })).toEqual({
      path: 'value.list[1].it',
      problem: expect.stringMatching(problem),
    });
    expect(refusal(value).path).toBe('value');
  });

  it('the reasons of Promise.allSettled, at the place of the first one (F5)', async () => {
    const settled = await Promise.allSettled([Promise.resolve(1), Promise.reject(new Error('no'))]);
    expect(refusal(settled, { path: 'output' })).toMatchObject({ path: 'output[1].reason' });
  });

  it.each<[string, unknown, string]>([
    [
      'a getter throws',
      {
        a: {
          get b(): never {
            throw new Error('no');
          },
        },
      },
      'value.a.b',
    ],
    [
      'toJSON throws',
      {
        a: {
          toJSON(): never {
            throw new Error('no');
          },
        },
      },
      'value.a',
    ],
    [
      'a proxy throws',
      {
        a: new Proxy(
          {},
          {
            ownKeys: () => {
              throw new Error('no');
            },
          },
        ),
      },
      'value.a',
    ],
  ])('where %s, with the cause', (_name, value, path) => {
    expect(() => encodePayload(value)).toThrow(
      expect.objectContaining({
        code: 'CYCLONE_INVALID_PAYLOAD',
        path,
        cause: expect.objectContaining({ message: 'no' }),
      }),
    );
  });

  it('where a proxy was revoked', () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(refusal({ a: [proxy] }).path).toBe('value.a[0]');
  });

  it('when it is a cycle, with a path that shows it', () => {
    const found = refusal(cyclic);
    expect(found.problem).toMatch(/cycle/);
    expect(found.path).toBe('value.list[0].parent');
  });

  it('when deeper than 100 levels', () => {
    expect(refusal(nested(101)).problem).toMatch(/deeper than 100/);
  });

  it('with the name of the node and of the value', () => {
    expect(() => encodePayload({ a: NaN }, { path: 'input', node: 'charge' })).toThrow('Node "charge": input.a is NaN');
  });

  it('when 100,000 levels deep, without a stack overflow', () => {
    let value: unknown = 1;
    for (let level = 0; level < 100_000; level++) value = [value];
    expect(refusal(value).problem).toMatch(/deeper than 100/);
  });

  it('when the levels around it leave too few', () => {
    expect(encodePayload(nested(90), { depth: 10 })).toBe(JSON.stringify(nested(90)));
    expect(refusal(nested(91), { depth: 10 }).problem).toMatch(/deeper than 100/);
  });

  it('even if the application taught BigInt to become JSON', () => {
    const prototype = BigInt.prototype as { toJSON?: () => string };
    prototype.toJSON = () => 'taught';
    try {
      expect(refusal({ a: 1n }).problem).toMatch(/BigInt/);
    } finally {
      delete prototype.toJSON;
    }
  });
});

describe('a payload over the limit (R36)', () => {
  const sized = (bytes: number): string => 'x'.repeat(bytes - 2);

  it('is 1 MiB by default', () => {
    expect(encodePayload(sized(1024 * 1024))).toHaveLength(1024 * 1024);
    expect(() => encodePayload(sized(1024 * 1024 + 1))).toThrow(PayloadTooLargeError);
  });

  it('is counted in bytes of UTF-8, not in characters', () => {
    expect(encodePayload('ééé', { maxBytes: 8 })).toBe('"ééé"');
    expect(() => encodePayload('ééé', { maxBytes: 7, path: 'output' })).toThrow('output is larger than 7 bytes');
    expect(() => encodePayload('"""', { maxBytes: 7 })).toThrow(PayloadTooLargeError);
  });

  it('is refused soon, however large it would become', () => {
    const huge: unknown[] = [];
    huge.length = 2 ** 32 - 1;
    expect(() => encodePayload(huge)).toThrow(PayloadTooLargeError);
    let doubling: unknown = 'leaf';
    for (let level = 0; level < 99; level++) doubling = { a: doubling, b: doubling };
    expect(() => encodePayload(doubling)).toThrow(PayloadTooLargeError);
  });
});
