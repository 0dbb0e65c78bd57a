import pg from 'pg';
import { InvalidOptionError } from '../model/errors/index.js';
import { createDatabase } from '../../../../test/support/postgres.js';
import { checkSchemaName, quoteIdentifier } from './identifier.js';

const AWKWARD = [
  'my-Schema',
  "o'brien",
  'a$$b',
  'a"b',
  'Ünïcode',
  'two words',
  'a.b',
  '\\',
  'select',
  'PG_catalog',
  '💥',
  'x'.repeat(63),
  'é'.repeat(31),
];

describe('checkSchemaName', () => {
  it.each(AWKWARD)('takes %j, and quoting makes Postgres keep it (S61)', (name) => {
    expect(checkSchemaName(name)).toBe(name);
  });

  it.each([
    [undefined, 'a string'],
    [7, 'a string'],
    ['', 'empty'],
    ['a\0b', 'U+0000'],
    ['a\ud800b', 'surrogate'],
    ['x'.repeat(64), '63 bytes, it has 64'],
    ['é'.repeat(32), '63 bytes, it has 64'],
    ['pg_mine', 'for itself'],
    ['information_schema', 'for itself'],
  ])('refuses %j and says why (S61)', (name, why) => {
    expect(() => checkSchemaName(name, 'schema')).toThrow(InvalidOptionError);
    expect(() => checkSchemaName(name, 'schema')).toThrow(why);
    expect(() => checkSchemaName(name, '--schema')).toThrow('--schema');
  });
});

describe('quoteIdentifier', () => {
  it('makes names that Postgres keeps, whatever they contain (S61)', async () => {
    const database = await createDatabase();
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    try {
      for (const name of AWKWARD) await client.query(`create schema ${quoteIdentifier(name)}`);
      const { rows } = await client.query('select nspname from pg_namespace where nspname = any($1)', [AWKWARD]);
      expect(rows.map((row) => row.nspname).toSorted()).toEqual(AWKWARD.toSorted());
    } finally {
      await client.end();
      await database.drop();
    }
  });

  it.each(['', 'a\0b', 'x'.repeat(64)])('refuses %j', (name) => {
    expect(() => quoteIdentifier(name)).toThrow(InvalidOptionError);
  });
});
