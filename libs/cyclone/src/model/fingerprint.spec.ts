import { errorFingerprint } from './fingerprint.js';

const of = (error: string, kind = 'charge', errorKind = 'retryable') => errorFingerprint({ kind, errorKind, error });

describe('the fingerprint of an error', () => {
  it('is 16 hex digits', () => expect(of('boom')).toMatch(/^[0-9a-f]{16}$/));

  it.each([
    ['timeout after 3012 ms', 'timeout after 45 ms'],
    ['connect ECONNREFUSED 10.0.0.1:5432', 'connect ECONNREFUSED 10.0.0.27:6432'],
    ['user 3fa85f64-5717-4562-b3fc-2c963f66afa6 not found', 'user 11111111-2222-3333-4444-555555555555 not found'],
    ['order "A-1" is gone', 'order "B-22 x" is gone'],
    ["no key 'a' in it", "no key 'bcd' in it"],
    ['commit deadbeef01 failed', 'commit cafebabe99aa failed'],
    ['at 2026-01-02T03:04:05.678Z', 'at 2027-11-12T13:14:15.001Z'],
  ])('is the same for %j and %j', (one, other) => expect(of(one)).toBe(of(other)));

  it.each([
    ['connection refused', 'connection reset'],
    ["can't charge, won't retry", "can't refund, won't retry"],
    ['facade added', 'decade faded'],
  ])('differs for %j and %j', (one, other) => expect(of(one)).not.toBe(of(other)));

  it('differs by kind and by error kind', () => {
    expect(of('boom', 'ship')).not.toBe(of('boom'));
    expect(of('boom', 'charge', 'permanent')).not.toBe(of('boom'));
  });
});
