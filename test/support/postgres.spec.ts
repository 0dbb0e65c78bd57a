import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import pg from 'pg';
import { createDatabase, startPostgres } from './postgres.js';

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}

describe('the server of the tests', () => {
  it('is a PostgreSQL 18', async () => {
    const database = await createDatabase();
    try {
      const [row] = await query(database.url, `SELECT current_setting('server_version_num')::int / 10000 AS major`);
      expect(row).toEqual({ major: 18 });
    } finally {
      await database.drop();
    }
  });

  it('lets nobody in as the superuser without its password (F29)', async () => {
    const server = await startPostgres();
    try {
      const without = new URL(server.url);
      expect(without.password).toMatch(/^[0-9a-f]{48}$/);
      without.password = 'postgres';
      await expect(query(without.href, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' });
    } finally {
      await server.destroy();
    }
  });

  it('gives every caller a database that nobody else sees', async () => {
    const [mine, yours] = await Promise.all([createDatabase(), createDatabase()]);
    try {
      await query(mine.url, 'CREATE TABLE only_mine (id int)');
      const sql = `SELECT current_database() AS name, to_regclass('only_mine') IS NOT NULL AS found`;
      expect(await query(mine.url, sql)).toEqual([{ name: mine.name, found: true }]);
      expect(await query(yours.url, sql)).toEqual([{ name: yours.name, found: false }]);
    } finally {
      await Promise.all([mine.drop(), yours.drop()]);
    }
  });

  it('drops a database although a client is connected, and copies one as a template', async () => {
    const original = await createDatabase();
    await query(original.url, 'CREATE TABLE seeded AS SELECT 42 AS answer');
    const copy = await createDatabase({ template: original.name });
    const client = new pg.Client({ connectionString: original.url });
    const ended = new Promise<Error>((resolve) => client.on('error', resolve));
    await client.connect();
    await original.drop();
    await expect(ended).resolves.toMatchObject({ code: '57P01' });
    expect(await query(copy.url, 'SELECT answer FROM seeded')).toEqual([{ answer: 42 }]);
    await copy.drop();
  });
});

describe('a server of one test', () => {
  it.each(['fast', 'immediate'] as const)('keeps committed rows and its port over a stop in mode %s', async (mode) => {
    const server = await startPostgres();
    try {
      await query(server.url, 'CREATE TABLE kept AS SELECT 1 AS id');
      const firstPid = server.pid;
      await server.stop(mode);
      await expect(query(server.url, 'SELECT 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
      await server.start();
      expect(server.pid).not.toBe(firstPid);
      expect(await query(server.url, 'SELECT id FROM kept')).toEqual([{ id: 1 }]);
      const recovered = readFileSync(server.logFile, 'utf8').includes('automatic recovery in progress');
      expect(recovered).toBe(mode === 'immediate');
    } finally {
      await server.destroy();
    }
    expect(existsSync(dirname(server.logFile))).toBe(false);
  });

  it('takes settings, and says why it cannot start', async () => {
    const server = await startPostgres({ settings: { fsync: true, max_connections: 7 } });
    try {
      const sql = `SELECT current_setting('fsync') AS fsync, current_setting('max_connections') AS connections`;
      expect(await query(server.url, sql)).toEqual([{ fsync: 'on', connections: '7' }]);
      await expect(startPostgres({ port: server.port })).rejects.toThrow(
        new RegExp(`could not start on port ${server.port}[^]*Address already in use`),
      );
    } finally {
      await server.destroy();
    }
  });
});
