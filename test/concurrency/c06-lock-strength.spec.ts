import { CompletionStore } from '#cyclone/store/completion-store.js';
import { leaseMark } from '#cyclone/store/lease.js';
import { Session } from '#cyclone/store/session.js';
import type { RawClient } from '#cyclone/store/raw-client.js';
import { EngineDatabase, type EngineEvent, type EngineSession } from '../support/engine-sql.js';
import { Gates } from '../support/gate.js';

let database: EngineDatabase;
let db: EngineSession;
let gates: Gates;
const completions = new CompletionStore('public');

beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
  await db.query(`create table account (id int primary key)`);
  await db.query(`create table booking (account int references account deferrable initially deferred)`);
});
beforeEach(async () => {
  gates = await Gates.install(database);
  await db.query('insert into account values (1) on conflict do nothing');
});
afterEach(async () => {
  await database.clear();
  await db.query('truncate account, booking');
});
afterAll(() => database.drop());

interface Transaction {
  readonly session: EngineSession;
  complete(): Promise<{ committed: boolean }>;
}

/** A completion transaction as the worker begins and ends it. */
async function begin(step: EngineEvent): Promise<Transaction> {
  const session = await database.open();
  const raw = new Session(session.client as unknown as RawClient, { preparedStatements: true });
  const lease = { runId: step.run_id, node: step.node, generation: step.generation };
  await completions.begin(raw, lease, false);
  return { session, complete: () => completions.finish(raw, 'me', { ...lease, output: '1' }) };
}

/**
 * Measured: FOR UPDATE on a run deadlocked with a foreign key of the application to it, and a deferred constraint that was checked at
 * COMMIT, under the run's lock, deadlocked siblings.
 */
describe('two steps of one run in their completion transactions (C6)', () => {
  it('do not deadlock when the deferred constraint of one needs a row that the other has locked', async () => {
    const run = await db.submit({ a: [], b: [] });
    const [a, b] = (await db.claim()).toSorted((x, y) => x.node.localeCompare(y.node)) as [EngineEvent, EngineEvent];
    const [booking, closing] = [await begin(a), await begin(b)];
    await booking.session.query('insert into booking values (1)');
    await closing.session.query('select 1 from account where id = 1 for update');

    // The constraint waits for the row, before the run is locked: so its sibling can go on and let go of the row.
    const parked = await gates.park(booking.session, booking.complete());
    expect(await gates.blockersOf(booking.session)).toEqual([closing.session.pid]);
    expect(await closing.complete()).toMatchObject({ committed: true });
    expect(await parked.result).toMatchObject({ committed: true });
    expect(await db.states(run)).toBe('completed: a=completed b=completed');
  });

  it('lets the application insert rows that refer to the run while the engine holds its lock', async () => {
    await db.query('create table if not exists note (run_id bigint references cyclone_runs)');
    const run = await db.submit({ a: [], b: [] });
    const [a] = (await db.claim()) as [EngineEvent];
    const { session, complete } = await begin(a);
    await gates.shut(`step ${a.node} completed`);
    const parked = await gates.park(session, complete());
    const other = await database.open();
    await other.query(`set statement_timeout = '20s'`);
    await other.query('insert into note values ($1)', [run]);
    await gates.open(`step ${a.node} completed`);
    expect(await parked.result).toMatchObject({ committed: true });
    await db.query('drop table note');
  });

  it('bears a mark that fits into a session name, whatever the node is called', () => {
    const mark = leaseMark('ü'.repeat(31), {
      runId: '9223372036854775807',
      node: 'ü'.repeat(256),
      generation: 2_147_483_647,
    });
    expect(Buffer.byteLength(mark)).toBeLessThan(64);
  });
});
