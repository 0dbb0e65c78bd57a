import { jest } from '@jest/globals';
import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { setTimeout as delay } from 'node:timers/promises';
import { createDatabase, openDataSource, type TestDatabase } from '../support/postgres.js';
import { startProgram, type Child } from './child.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cyclone-demo-'));
  await chmod(folder, 0o755); // root's PostgreSQL runs as somebody else
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

const children: Child[] = [];
function demo(args: string[], env: NodeJS.ProcessEnv = {}): Child {
  const child = startProgram('demo/main.js', args, env);
  children.push(child);
  return child;
}
afterEach(async () => {
  for (const child of children) child.process.kill('SIGKILL');
  await Promise.all(children.map(({ ended }) => ended));
});

const lastLineOf = ({ output }: Child) => JSON.parse(output.trim().split('\n').at(-1)!) as Record<string, unknown>;

/** Schemas of demos, and connections of anybody. */
async function leftIn(database: TestDatabase): Promise<unknown[]> {
  const db = await openDataSource(database.url);
  try {
    return await db.query(
      `SELECT nspname AS name FROM pg_namespace WHERE nspname LIKE 'cyclone%'
       UNION ALL
       SELECT application_name FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
  } finally {
    await db.destroy();
  }
}

/** Locks a table of the demo as soon as it is there: before a worker is, which starts after the tables are made. */
async function lockTable(database: TestDatabase, table: string): Promise<{ release(): Promise<void> }> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  for (;;) {
    const { rows } = await client.query<{ name: string }>(
      `SELECT oid::regclass::text AS name FROM pg_class WHERE relname = $1 AND relkind = 'r'`,
      [table],
    );
    if (rows[0]) {
      await client.query(`BEGIN; LOCK TABLE ${rows[0].name} IN ACCESS EXCLUSIVE MODE`);
      return { release: () => client.end() };
    }
    await delay(20);
  }
}

jest.setTimeout(180_000); // each starts processes that load all of Nest, beside whatever else the machine does

describe('npm run demo', () => {
  it('loses and duplicates nothing while workers are killed', async () => {
    const child = demo(['--orders', '40', '--kills', '2'], { TMPDIR: folder });
    expect(await child.ended).toBe(0);
    const result = lastLineOf(child);
    expect(result).toMatchObject({
      orders: 40,
      runsCompleted: 40,
      ledgerRows: 40,
      kills: 2,
      lost: 0,
      duplicated: 0,
      unfinished: 0,
    });
    expect(result.ledgerTotal).toBe(result.expectedTotal);
    expect(result.ledgerTotal).toMatch(/^\d+(\.\d+)?$/);
    expect(result.reclaims).toBeGreaterThan(0);
    expect(await readdir(folder)).toEqual([]);
  });

  it('takes a file, reports its bad lines, and leaves nothing in the database that it was given', async () => {
    const file = join(folder, 'orders.csv');
    await writeFile(
      file,
      'order_id,product_id,unit_price,quantity,discount,note\n1,11,14,12,0.05,x\n3,12,9.8,x,0,x\n2,13,0.1,3,0,x\n',
    );
    const database = await createDatabase();
    try {
      const child = demo(['--file', file, '--kills', '0'], { DATABASE_URL: database.url });
      expect(await child.ended).toBe(0);
      expect(child.output).toContain('line 3 cannot be used: quantity is "x": quantity must');
      expect(child.output).toContain('1 order is left out for it');
      expect(lastLineOf(child)).toEqual({
        orders: 2,
        runsCompleted: 2,
        ledgerRows: 2,
        ledgerTotal: '159.9',
        expectedTotal: '159.9',
        kills: 0,
        reclaims: 0,
        lost: 0,
        duplicated: 0,
        failed: 0,
        unfinished: 0,
      });
      expect(await leftIn(database)).toEqual([]);
    } finally {
      await database.drop();
    }
  });

  it('leaves nothing behind when it is interrupted', async () => {
    const database = await createDatabase();
    try {
      const child = demo(['--orders', '100'], { DATABASE_URL: database.url });
      await child.says(/[1-9]\d*\/100 orders/);
      child.process.kill('SIGINT');
      expect(await child.ended).toBe(130);
      expect(child.output.trim()).toMatch(/Stopped\.$/);
      expect(await leftIn(database)).toEqual([]);
    } finally {
      await database.drop();
    }
  });

  it('takes its workers along when it is killed itself', async () => {
    const database = await createDatabase();
    try {
      const child = demo(['--orders', '100'], { DATABASE_URL: database.url });
      await child.says(/[1-9]\d*\/100 orders/);
      child.process.kill('SIGKILL');
      expect(await child.ended).toBe('SIGKILL');
      // Its schema stays, for lack of anybody to drop it; the connections of the workers end with them.
      while ((await leftIn(database)).length > 1) await delay(50);
    } finally {
      await database.drop();
    }
  });

  it('F9: says unfinished and not lost where nothing moves any more, and ends with 3', async () => {
    const database = await createDatabase();
    try {
      const child = demo(['--orders', '40', '--kills', '0', '--patience', '3'], { DATABASE_URL: database.url });
      const lock = await lockTable(database, 'card_terminal'); // no charge gets an answer
      await child.says(/Nothing has moved for 3 seconds: giving up/);
      await lock.release();
      expect(await child.ended).toBe(3);
      const { lost, duplicated, failed, unfinished } = lastLineOf(child);
      expect({ lost, duplicated, failed }).toEqual({ lost: 0, duplicated: 0, failed: 0 });
      expect(unfinished).toBeGreaterThan(0);
      expect(await leftIn(database)).toEqual([]);
    } finally {
      await database.drop();
    }
  });

  it('F9: kills by the progress of steps, also where no order has ended yet', async () => {
    const database = await createDatabase();
    try {
      const child = demo(['--orders', '12', '--kills', '1'], { DATABASE_URL: database.url });
      const lock = await lockTable(database, 'outbox'); // no receipt is sent, so no order ends
      expect(await child.says(/kill -9 worker-/)).not.toMatch(/[1-9]\d*\/12 orders/);
      await lock.release();
      expect(await child.ended).toBe(0);
      expect(lastLineOf(child)).toMatchObject({ orders: 12, ledgerRows: 12, kills: 1, lost: 0, unfinished: 0 });
    } finally {
      await database.drop();
    }
  });

  it.each([
    [['--orders', 'many'], '--orders is "many"'],
    [['--file', '/no/such/file.csv'], '/no/such/file.csv cannot be used'],
    [['--fiel', 'x.csv'], "Unknown option '--fiel'"],
  ])('says what is wrong with %j', async (args, message) => {
    const child = demo(args);
    expect(await child.ended).toBe(2);
    expect(child.output).toContain(message);
  });
});
