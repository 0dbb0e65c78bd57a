import { jest } from '@jest/globals';
import { runInNewContext } from 'node:vm';
import * as errors from './index.js';

type ErrorClass = typeof errors.CycloneError & (new (...args: unknown[]) => errors.CycloneError);

const classes = Object.entries(errors).filter(
  (entry): entry is [string, ErrorClass] => typeof entry[1] === 'function' && entry[1].prototype instanceof Error,
);

describe('every error class', () => {
  it('has a stable code of its own that says CYCLONE_', () => {
    const codes = classes.map(([, errorClass]) => errorClass.code);
    expect(new Set(codes).size).toBe(classes.length);
    for (const code of codes) expect(code).toMatch(/^CYCLONE_[A-Z_]+$/);
  });

  it('is named as it is exported, even when a bundler renames the class', () => {
    for (const [name, errorClass] of classes) expect(errorClass.prototype.name).toBe(name);
  });
});

describe('CycloneError.is', () => {
  const notFound = new errors.RunNotFoundError('42');

  it('tells the base and the class, and no other class', () => {
    expect(errors.CycloneError.is(notFound)).toBe(true);
    expect(errors.RunNotFoundError.is(notFound)).toBe(true);
    expect(errors.NodeNotFoundError.is(notFound)).toBe(false);
  });

  it('recognises an error of another copy of the package', async () => {
    jest.resetModules();
    const copy = (await import('./index.js')) as typeof errors;
    const theirs = new copy.PermanentError('no such card');
    expect(theirs).not.toBeInstanceOf(errors.PermanentError);
    expect(errors.PermanentError.is(theirs)).toBe(true);
    expect(errors.CycloneError.is(theirs)).toBe(true);
    expect(errors.RetryAfterError.is(theirs)).toBe(false);
  });

  it('recognises the subclasses that an application declares', () => {
    class CardDeclined extends errors.PermanentError {}
    const declined = new CardDeclined('declined');
    expect(errors.PermanentError.is(declined)).toBe(true);
    expect(CardDeclined.is(declined)).toBe(true);
    expect(CardDeclined.is(new errors.PermanentError('other'))).toBe(false);
    expect(declined.code).toBe('CYCLONE_PERMANENT');
  });

  it('says no to anything else, hostile values included, and never throws', () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const throwing = new Proxy(
      {},
      {
        get() {
          throw new Error('hands off');
        },
      },
    );
    for (const thrown of [
      undefined,
      null,
      'text',
      7,
      Symbol('s'),
      new Error('plain'),
      { code: 'CYCLONE_ERROR' },
      proxy,
      throwing,
    ]) {
      expect(errors.CycloneError.is(thrown)).toBe(false);
    }
    expect(errors.CycloneError.is(runInNewContext('new Error("other realm")'))).toBe(false);
  });
});

describe('an error', () => {
  it('keeps its cause and carries its data', () => {
    const cause = new Error('root');
    expect(new errors.PermanentError('no', { cause }).cause).toBe(cause);
    const failed = new errors.RunFailedError('42', {
      node: 'charge',
      kind: 'charge',
      error: 'declined',
      errorKind: 'permanent',
    });
    expect(failed).toMatchObject({
      runId: '42',
      node: 'charge',
      kind: 'charge',
      error: 'declined',
      errorKind: 'permanent',
    });
    expect(failed.message).toContain('declined. Fix');
    const whole = new errors.RunFailedError('42', { node: null, kind: null, error: 'No card!', errorKind: null });
    expect(whole.message).toContain('No card! Fix');
  });

  it('shows its code to loggers that copy own properties', () => {
    expect(Object.keys(new errors.RunNotFoundError('42'))).toContain('code');
  });

  it('names the root run when a child run is retried (R31)', () => {
    expect(new errors.ChildNotRetryableError('43', { rootRunId: '42' }).message).toContain('root run 42');
  });

  it('refuses a delay that is no duration where the handler makes it (R15)', () => {
    expect(() => new errors.RetryAfterError('soon' as never)).toThrow(errors.InvalidOptionError);
    expect(new errors.RetryAfterError('5s').delayMs).toBe(5_000);
    expect(new errors.SnoozeError('1m').delayMs).toBe(60_000);
  });
});
