import { transactionControl } from './transaction-control.js';

describe('the look at what a handler sends in its completion transaction (R14)', () => {
  it.each([
    'set client_encoding = latin1',
    'SET search_path TO tenant',
    '  /* why /* not */ */ -- really\n set array_nulls = off',
    'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY',
    'set session statement_timeout = 1',
    'set session authorization bob',
    'set role bob',
    "set time zone 'UTC'",
    'SET NAMES latin1',
    'reset role',
    'RESET ALL',
    'discard all',
    'listen channel',
    'select 1; set role bob',
    "select ';' ; reset all",
    "select set_config('search_path', 'x', false)",
    'select set_config(lower($1), concat($2, $3), FALSE)',
    "select set_config('a', 'b', 'off'::bool)",
    'do $$ begin set role bob; end $$',
    'do language plpgsql $body$ begin if true then reset all; end if; end $body$',
    "do 'begin perform set_config(''a'', ''b'', false); end'",
    "do $$ begin execute 'set role bob'; end $$",
  ])('sees that %p changes the session (F54)', (sql) => {
    expect(transactionControl(sql)).toBe('session');
  });

  it.each([
    ['committed', 'commit'],
    ['committed', '/* now */ COMMIT AND CHAIN'],
    ['committed', 'insert into t values (1); end'],
    ['committed', "prepare transaction 'x'"],
    ['rolled_back', 'rollback work'],
    ['rolled_back', '-- no\nabort'],
  ])('sees an end of the transaction: %s by %p', (problem, sql) => {
    expect(transactionControl(sql)).toBe(problem);
  });

  it.each([
    'set local role bob',
    '/* x */ SET /* y */ LOCAL statement_timeout = 1',
    'set transaction read only',
    'set constraints all deferred',
    'rollback to savepoint a',
    'rollback work to a',
    'update t set a = 1; update t set reset = 2',
    "insert into notes values ('x; set role bob; commit')",
    'insert into notes values ($note$; reset all;$note$)',
    `select "set_config" from t where note = E'it\\'s; set role bob'`,
    "select set_config('search_path', 'x', true)",
    'select set_config($1, $2, $3)',
    'do $$ begin update t set a = 1; set local role bob; end $$',
    'prepare q as select 1',
    'create function f() returns int begin atomic select 1; end',
    "select case when true then 'set' end",
    'select $1::text || $2',
    undefined,
  ])('lets %p pass', (sql) => {
    expect(transactionControl(sql)).toBeUndefined();
  });

  it('takes time in proportion to the text, whatever is left open in it', () => {
    for (const open of ["set local a = '", '/*', 'select $x$', '"', '/*'.repeat(100_000)]) {
      expect(transactionControl(`${open}${"'' set x \\ ".repeat(100_000)}`)).toBeUndefined();
    }
  });
});
