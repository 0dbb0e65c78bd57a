import { faultOf, isAnswer, isInfrastructure, isRefusal } from './database-fault.js';

const answer = (code: string, more: object = {}) => Object.assign(new Error('x'), { code, severity: 'ERROR', ...more });
const network = (code: string) => Object.assign(new Error('x'), { code });

describe('what an error of the database means (R39)', () => {
  it.each([
    ['session', ['57P01', '57P02', '57P03', '57P05', '08006', '25P03', '25P04']],
    ['plan', ['26000', '42P05']],
    ['conflict', ['40001', '40P01', '55P03']],
    ['cancelled', ['57014']],
    ['shortage', ['53100', '53200', '53300', '25006', '57000', '58030']],
    ['internal', ['XX000', 'XX002']],
    ['schema', ['42P01', '42883', '42501', '3F000', '28P01', '0A000']],
    ['data', ['22P05', '22P02', '22021', '54000', '23505', 'P0001', 'CY001']],
  ])('%s: %j', (fault, codes) => {
    expect(codes.map((code) => faultOf(answer(code)))).toEqual(codes.map(() => fault));
  });

  it.each(['EPIPE', 'EPERM', 'ECONNRESET', 'ETIMEDOUT'])('%s is no answer: the session is lost', (code) => {
    expect(isAnswer(network(code))).toBe(false);
  });

  it('whatever ends the session is a lost session, whatever its code', () => {
    expect(faultOf(answer('53300', { severity: 'FATAL' }))).toBe('session');
    expect(faultOf(answer('XX000', { severity: 'PANIC' }))).toBe('session');
  });

  it('a plan whose result has changed is told by the place in the server, in any language', () => {
    expect(faultOf(answer('0A000', { routine: 'RevalidateCachedQuery' }))).toBe('plan');
  });

  it('reads the driver error inside another one', () => {
    expect(faultOf({ driverError: answer('23505') })).toBe('data');
  });

  it.each([undefined, null, 'text', new Error('Connection terminated unexpectedly')])(
    'takes %p for a lost session of an engine that gets it, and for nothing in a statement of a handler',
    (error) => {
      expect(faultOf(error)).toBe('session');
      expect(isInfrastructure(error)).toBe(false);
    },
  );

  it('refuses for good only what is about the data', () => {
    expect(['22P05', '23514', '54000', 'P0001'].every((code) => isRefusal(answer(code)))).toBe(true);
    expect(['42501', '42883', '53100', '40001', '57014', 'XX000'].some((code) => isRefusal(answer(code)))).toBe(false);
  });
});
