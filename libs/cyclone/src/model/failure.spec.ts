import { runInNewContext } from 'node:vm';
import { QueryFailedError } from 'typeorm';
import { PermanentError, RetryAfterError, SnoozeError } from './errors/index.js';
import { describeFailure } from './failure.js';
import { errorFingerprint } from './fingerprint.js';

describe('an error of a handler', () => {
  it('is retryable, with its message and no stack (R15, R16)', () => {
    expect(describeFailure(new Error('card declined'))).toEqual({
      error: 'card declined',
      errorKind: 'retryable',
      panicStack: null,
    });
  });

  it('that is permanent discards at once (R15)', () => {
    class CardDeclined extends PermanentError {}
    expect(describeFailure(new PermanentError('no such user'))).toMatchObject({
      error: 'no such user',
      errorKind: 'permanent',
      panicStack: null,
    });
    expect(describeFailure(new CardDeclined('declined'))).toMatchObject({ errorKind: 'permanent' });
    expect(describeFailure(new Error('refused output'), { permanent: true })).toMatchObject({
      error: 'refused output',
      errorKind: 'permanent',
    });
  });

  it('may set the delay of its retry (R15)', () => {
    expect(describeFailure(new RetryAfterError('90s', 'rate limited'))).toEqual({
      error: 'rate limited',
      errorKind: 'retryable',
      panicStack: null,
      retryAfterMs: 90_000,
    });
  });

  it('may be a snooze (R15)', () => expect(describeFailure(new SnoozeError('1m'))).toMatchObject({ snoozeMs: 60_000 }));

  it('without a message is called by its name and code', () => {
    expect(describeFailure(new Error()).error).toBe('Error');
    const refused = Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' });
    expect(describeFailure(refused).error).toBe('AggregateError: ECONNREFUSED');
  });

  it('that is a DOMException, such as an abort, is ordinary', () => {
    expect(describeFailure(new DOMException('The operation was aborted', 'AbortError'))).toMatchObject({
      error: 'The operation was aborted',
      panicStack: null,
    });
  });

  it('that is a failed fetch is ordinary although it is a TypeError (R16)', () => {
    const failed = new TypeError('fetch failed', {
      cause: Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }),
    });
    expect(describeFailure(failed)).toEqual({
      error: 'fetch failed; caused by connect (ECONNREFUSED)',
      errorKind: 'retryable',
      panicStack: null,
    });
  });
});

describe('an error with a cause says why (F19)', () => {
  const coded = (message: string, code: string, cause?: unknown): Error =>
    Object.assign(new Error(message, { cause }), { code });

  it.each<[string, unknown, string]>([
    [
      'a DNS failure',
      new TypeError('fetch failed', { cause: coded('getaddrinfo ENOTFOUND pay.example', 'ENOTFOUND') }),
      'fetch failed; caused by getaddrinfo ENOTFOUND pay.example',
    ],
    [
      'a refused connection, on each address',
      new TypeError('fetch failed', {
        cause: Object.assign(
          new AggregateError([
            coded('connect ECONNREFUSED ::1:81', 'ECONNREFUSED'),
            coded('connect ECONNREFUSED 127.0.0.1:81', 'ECONNREFUSED'),
          ]),
          { code: 'ECONNREFUSED' },
        ),
      }),
      'fetch failed; caused by AggregateError: ECONNREFUSED [connect ECONNREFUSED ::1:81; connect ECONNREFUSED 127.0.0.1:81]',
    ],
    [
      'a certificate',
      new TypeError('fetch failed', { cause: coded('self-signed certificate', 'DEPTH_ZERO_SELF_SIGNED_CERT') }),
      'fetch failed; caused by self-signed certificate (DEPTH_ZERO_SELF_SIGNED_CERT)',
    ],
    [
      'a wrapper',
      new Error('charge failed', { cause: new RangeError('amount', { cause: 'no currency' }) }),
      'charge failed; caused by RangeError: amount; caused by no currency',
    ],
    [
      'a permanent wrapper that repeats its cause',
      new PermanentError('declined: no funds', { cause: new Error('no funds') }),
      'declined: no funds',
    ],
    [
      'the errors of Promise.any, with their causes',
      new AggregateError(
        [new Error('a', { cause: new Error('b') }), new Error('a', { cause: new Error('b') })],
        'none',
      ),
      'none [a; caused by b]',
    ],
    ['a code of its own', coded('bad gateway', 'ERR_BAD_RESPONSE'), 'bad gateway (ERR_BAD_RESPONSE)'],
  ])('%s', (_name, thrown, error) => expect(describeFailure(thrown).error).toBe(error));

  it('to a depth of 5, ten members, and not twice around a circle', () => {
    let deep = new Error('0');
    for (let level = 1; level < 10; level++) deep = new Error(`${level}`, { cause: deep });
    expect(describeFailure(deep).error.match(/caused by/g)).toHaveLength(5);
    const wide = new AggregateError(
      Array.from({ length: 30 }, (_, i) => new Error(`member ${i}`)),
      'all',
    );
    expect(describeFailure(wide).error).toMatch(/member 9; and 20 more\]$/);
    const circle = new Error('a');
    circle.cause = new Error('b', { cause: circle });
    expect(describeFailure(circle).error).toBe('a; caused by b');
    const huge = new Error('top', { cause: new Error('x'.repeat(1e6), { cause: new Error('end') }) });
    expect(describeFailure(huge).error.length).toBeLessThan(1_100);
  });

  it('with messages, codes and names only', () => {
    const cause = Object.assign(new Error('401'), {
      config: { headers: { authorization: 'canary' } },
      code: 'canary-1',
    });
    expect(JSON.stringify(describeFailure(new Error('no', { cause })))).not.toContain('canary');
  });

  it('also in the stack of a fault, and in the fingerprint', () => {
    const failure = describeFailure(new RangeError('amount', { cause: new Error('no currency') }));
    expect(failure.error).toBe('handler panicked: RangeError: amount; caused by no currency');
    expect(failure.panicStack).toMatch(/^RangeError: amount[^]*\nCaused by: Error: no currency\n +at /);
    const of = (code: string): string => {
      const { error, errorKind } = describeFailure(new TypeError('fetch failed', { cause: coded('x', code) }));
      return errorFingerprint({ kind: 'charge', errorKind, error });
    };
    expect(of('ENOTFOUND')).not.toBe(of('ECONNRESET'));
  });
});

describe('a programming fault of a handler is a panic (R16)', () => {
  it.each([TypeError, ReferenceError, RangeError, SyntaxError])('when it is a %p', (Fault) => {
    const failure = describeFailure(new Fault('x is\n  not a function'));
    expect(failure).toMatchObject({
      error: `handler panicked: ${Fault.name}: x is not a function`,
      errorKind: 'retryable',
    });
    expect(failure.panicStack).toContain('failure.spec');
  });

  it('when it comes from another realm (C18)', () => {
    const failure = describeFailure(runInNewContext('try { undefined.x } catch (e) { e }'));
    expect(failure.error).toMatch(/^handler panicked: TypeError: /);
    expect(failure.panicStack).not.toBeNull();
  });

  it('but not when an application names its own subclass', () => {
    class BadInput extends TypeError {
      override name = 'BadInput';
    }
    expect(describeFailure(new BadInput('no'))).toMatchObject({ error: 'no', panicStack: null });
  });

  it.each<[unknown, string]>([
    ['boom', 'handler panicked: boom'],
    [{ code: 1 }, 'handler panicked: {"code":1}'],
    [undefined, 'handler panicked: undefined'],
    [null, 'handler panicked: null'],
    [42, 'handler panicked: 42'],
    [1n, 'handler panicked: 1'],
    [Symbol('s'), 'handler panicked: Symbol(s)'],
    [() => 1, 'handler panicked: a function'],
  ])('when it throws %p, which is no Error (S15)', (thrown, error) => {
    const failure = describeFailure(thrown);
    expect(failure).toMatchObject({ error, errorKind: 'retryable' });
    expect(failure.panicStack).toContain('no Error');
  });
});

describe('a hostile thrown value', () => {
  const angry = {
    get(): never {
      throw new Error('hands off');
    },
  };
  const revoked = (target: object): unknown => {
    const { proxy, revoke } = Proxy.revocable(target, {});
    revoke();
    return proxy;
  };

  it.each<[string, unknown]>([
    ['a proxy that throws on every read', new Proxy({}, angry)],
    ['a proxy of an error', new Proxy(new Error('x'), angry)],
    ['a revoked proxy', revoked({})],
    ['a revoked proxy of a function', revoked(() => 1)],
    ['an object without a prototype', Object.create(null)],
    ['an object whose toString throws', { toString: angry.get, toJSON: angry.get }],
    ['a cyclic object', ((o: { self?: unknown }) => (o.self = o))({})],
    ['an error whose message throws', Object.defineProperty(new Error('x'), 'message', angry)],
    ['an error whose name throws', Object.defineProperty(new Error('x'), 'name', angry)],
    ['a fault whose stack throws', Object.defineProperty(new TypeError('x'), 'stack', angry)],
    ['a fault whose cause throws', Object.defineProperty(new TypeError('x'), 'cause', angry)],
    ['an error whose message is an object', Object.assign(new Error('x'), { message: Object.create(null) as unknown })],
    ['an error whose message is a symbol', Object.assign(new Error('x'), { message: Symbol('s') })],
    [
      'an AggregateError whose list of errors is hostile',
      Object.assign(new AggregateError([]), { errors: revoked([]) }),
    ],
    ['an error that is its own cause', ((e: Error) => Object.assign(e, { cause: e }))(new Error('x'))],
  ])('is described all the same: %s', (_name, thrown) => {
    const failure = describeFailure(thrown);
    expect(failure.error).not.toBe('');
    expect(failure.errorKind).toBe('retryable');
  });

  it('is cut to 8 KiB of error and 32 KiB of stack, between whole characters (R16)', () => {
    const failure = describeFailure(
      Object.assign(new TypeError('é'.repeat(10_000_000)), { stack: '😀'.repeat(100_000) }),
    );
    expect(Buffer.byteLength(failure.error)).toBeLessThanOrEqual(8 * 1024);
    expect(Buffer.byteLength(failure.error)).toBeGreaterThan(8 * 1024 - 8);
    expect(failure.error).toMatch(/é…$/);
    expect(Buffer.byteLength(failure.panicStack ?? '')).toBeLessThanOrEqual(32 * 1024);
    expect(failure.panicStack).toMatch(/😀…$/u);
  });

  it('becomes storable: no U+0000, no lone surrogate (R16)', () => {
    expect(describeFailure(new Error('a\u0000b\ud83dc😀')).error).toBe('a\ufffdb\ufffdc😀');
  });
});

describe('a database error lets no query parameter through (S17)', () => {
  const canary = 'canary-4711-secret';
  const pgError = (fields: { message: string; code: string }): Error =>
    Object.assign(new Error(fields.message), { severity: 'ERROR', ...fields });
  const failed = (message: string, code: string, parameters: unknown[]): QueryFailedError =>
    new QueryFailedError('SELECT $1::int', parameters, pgError({ message, code }));

  it.each<[string, unknown]>([
    ['quoted by the message', failed(`invalid input syntax for type integer: "${canary}"`, '22P02', [canary])],
    [
      'written into the statement',
      failed(`invalid input syntax for type integer: "say "${canary}" twice"`, '22P02', []),
    ],
    ['without quotes', failed(`the rule refuses ${canary}`, 'P0001', [canary])],
    [
      'inside a JSON parameter',
      failed(`the rule refuses ${canary}`, 'P0001', [JSON.stringify({ deep: [{ token: canary }] })]),
    ],
    ['inside an array parameter', failed(`the rule refuses ${canary}`, 'P0001', [[['x', canary]]])],
    [
      'of a driver error without TypeORM',
      pgError({ message: `invalid input syntax for type uuid: "${canary}"`, code: '22P02' }),
    ],
    ['in a wrapped error', new Error(`charge failed: bad value ${canary}`, { cause: failed('x', 'P0001', [canary]) })],
    [
      'in the message that a wrapper repeats',
      ((cause) => new Error(`charge failed: ${cause.message}`, { cause }))(
        failed(`bad input: "${canary}"`, '22007', []),
      ),
    ],
    [
      'in a member of an AggregateError (F19)',
      new AggregateError([new Error('x', { cause: failed(`the rule refuses ${canary}`, 'P0001', [canary]) })], 'all'),
    ],
    [
      'quoted by a cause, and cut there (F19)',
      new Error('x', { cause: failed(`${'y'.repeat(990)} ${canary}`, 'P0001', [canary]) }),
    ],
    ['in a permanent wrapper', new PermanentError(`no: ${canary}`, { cause: failed('x', 'P0001', [canary]) })],
    ['in a fault', new TypeError(`no: ${canary}`, { cause: failed('x', 'P0001', [canary]) })],
    ['thrown as a plain object', { ...failed('x', 'P0001', [canary]) }],
    [
      'among too many',
      failed(`the rule refuses ${canary}`, 'P0001', [...Array.from({ length: 3_000 }, (_, i) => `value ${i}`), canary]),
    ],
  ])('%s', (_name, thrown) => {
    const failure = describeFailure(thrown);
    expect(JSON.stringify(failure)).not.toContain(canary);
    expect(failure.error).not.toBe('');
  });

  it('and keeps what helps: constraint names and short words', () => {
    const failure = describeFailure(
      failed('duplicate key value violates unique constraint "ledger_pkey"', '23505', ['a', 1, '42']),
    );
    expect(failure.error).toBe('duplicate key value violates unique constraint "ledger_pkey"');
    expect(describeFailure(failed('the rule refuses "42"', 'P0001', ['42'])).error).toBe('the rule refuses "…"');
  });
});
