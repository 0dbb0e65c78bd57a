import { EngineDatabase, markOf, told, type EngineEvent, type EngineSession } from '../support/engine-sql.js';
import { Gates } from '../support/gate.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
  await db.query(
    'create table ledger (run_id bigint references cyclone_runs (id), node text, primary key (run_id, node))',
  );
});
afterEach(async () => {
  await db.query('rollback');
  await database.clear();
});
afterAll(() => database.drop());

const book = (session: EngineSession, { run_id: run, node }: EngineEvent) =>
  session.query('insert into ledger values ($1, $2)', [run, node]);
const booked = () => db.value<number>('select count(*)::int from ledger');

describe('cyclone_complete', () => {
  it('stores the output, promotes dependents and ends the run with the writes of the handler (R13)', async () => {
    const run = await db.submit({ a: [], b: ['a'] });
    const a = await db.claimOne();
    await db.beginCompletion(a);
    await book(db, a);
    expect(told(await db.complete(a, { paid: true }))).toEqual(['promoted b']);
    await db.query('commit');
    expect(await db.step(run, 'a')).toMatchObject({ state: 'completed', output: { paid: true } });
    const b = await db.claimOne();
    await db.beginCompletion(b);
    expect(told(await db.complete(b))).toEqual(['run_completed']);
    await db.query('commit');
    expect(await booked()).toBe(1);
  });

  it('leaves nothing behind when the transaction rolls back (R13)', async () => {
    const run = await db.submit({ a: [], b: ['a'] });
    const a = await db.claimOne();
    await db.beginCompletion(a);
    await book(db, a);
    await db.complete(a);
    await db.query('rollback');
    expect(await db.states(run)).toBe('running: a=running b=pending');
    expect(await booked()).toBe(0);
  });

  it.each<[string, (run: string, lease: EngineEvent) => Promise<unknown>]>([
    ['was cancelled', (run) => db.cancel(run)],
    [
      'was released and claimed again by the same owner',
      async (_run, lease) => {
        await db.settle('released', lease);
        await db.claim();
      },
    ],
    ['belongs to another owner', () => db.query(`update cyclone_steps set lease_owner = 'other' where node = 'a'`)],
    [
      'is gone with its run',
      async () => {
        await db.query('delete from cyclone_steps');
        await db.query('delete from cyclone_runs');
      },
    ],
  ])('refuses with CY001 when the step %s, and the writes roll back (R12)', async (_name, takeAway) => {
    const run = await db.submit({ a: [], b: [] });
    const a = (await db.claim()).find(({ node }) => node === 'a')!;
    const worker = await database.open();
    await worker.beginCompletion(a);
    await worker.query('create temporary table written on commit preserve rows as select 1 as x');
    await takeAway(run, a);
    await expect(worker.complete(a)).rejects.toMatchObject({ code: 'CY001' });
    expect((await worker.client.query('commit')).command).toBe('ROLLBACK');
    expect(await worker.value(`select to_regclass('written')`)).toBeNull();
  });

  it.each([
    ['committed and began another transaction', ['commit', 'begin']],
    ['rolled back and went on without one', ['rollback']],
    ['committed and chained', ['commit and chain']],
  ])('refuses with CY002 when the handler %s (R14, C5)', async (_name, statements) => {
    const run = await db.submit({ a: [] });
    const a = await db.claimOne();
    const worker = await database.open();
    await worker.beginCompletion(a);
    for (const statement of statements) await worker.query(statement);
    await expect(worker.complete(a)).rejects.toMatchObject({ code: 'CY002' });
    await worker.query('rollback');
    expect(await db.states(run)).toBe('running: a=running');
  });

  it('accepts a handler that used savepoints, and marks the session until the end of the transaction only (C3)', async () => {
    await db.submit({ a: [] });
    const a = await db.claimOne();
    const before = await db.value('show application_name');
    await db.beginCompletion(a);
    expect(await db.value('show application_name')).toBe(markOf(a));
    await db.query('savepoint s');
    await book(db, a);
    await db.query('rollback to s');
    expect(told(await db.complete(a))).toEqual(['run_completed']);
    await db.query('commit');
    expect(await db.value('show application_name')).toBe(before);
    expect(await booked()).toBe(0);
  });

  it('waits for the lock of its run, and two siblings that complete at once promote their dependent', async () => {
    const gates = await Gates.install(database);
    const run = await db.submit({ a: [], b: [], c: ['a', 'b'] });
    const claimed = await db.claim();
    const [a, b] = ['a', 'b'].map((node) => claimed.find((step) => step.node === node)!);
    const [one, two] = [await database.open(), await database.open()];
    await one.beginCompletion(a!);
    await two.beginCompletion(b!);
    await one.complete(a!);
    const second = await gates.park(two, two.complete(b!));
    expect(await gates.blockersOf(two)).toEqual([one.pid]);
    await one.query('commit');
    expect(told(await second.result)).toEqual(['promoted c']);
    await two.query('commit');
    expect((await db.step(run, 'c')).state).toBe('available');
  });

  it('commits one effect of two attempts: the first was reclaimed while it was about to complete (R12, S2)', async () => {
    const run = await db.submit({ a: [] });
    const zombie = await database.open();
    const first = await zombie.claimOne({ owner: 'zombie' });
    await zombie.beginCompletion(first);
    await book(zombie, first);
    await database.moveClock(60_000);
    expect(told(await db.sweep())).toEqual(['reclaimed a']);
    const second = await db.claimOne({ owner: 'successor' });
    await expect(zombie.complete(first, undefined, 'zombie')).rejects.toMatchObject({ code: 'CY001' });
    await zombie.query('rollback');
    await db.beginCompletion(second);
    await book(db, second);
    await db.complete(second, undefined, 'successor');
    await db.query('commit');
    expect(await booked()).toBe(1);
    expect((await db.step(run, 'a')).reclaims).toBe(1);
  });
});

describe('locks on runs', () => {
  it('go together with foreign keys of the application to cyclone_runs (C6)', async () => {
    const gates = await Gates.install(database);
    const run = await db.submit({ a: [], b: [] });
    const [a, b] = await db.claim();
    const [one, two, three] = [await database.open(), await database.open(), await database.open()];
    await one.beginCompletion(a!);
    await two.beginCompletion(b!);
    // Both hold a key share lock on the run, through the foreign key; then each wants to lock the run for its completion.
    await book(one, a!);
    await book(two, b!);
    await one.complete(a!);
    const second = await gates.park(two, two.complete(b!));
    // The application may refer to a run that the engine has locked.
    await three.query('insert into ledger values ($1, $2)', [run, 'of the application']);
    await one.query('commit');
    await second.result;
    await two.query('commit');
    expect(await booked()).toBe(3);
    expect((await db.run(run)).state).toBe('completed');
  });

  it.each<[string, (session: EngineSession, run: string) => Promise<EngineEvent[]>]>([
    ['cancel', (session, run) => session.cancel(run)],
    ['pause', (session, run) => session.pause(run)],
    ['sweep', (session) => session.sweep()],
    ['deadlines', (session) => session.deadlines()],
  ])('are weak enough for %s to pass a transaction that refers to the run (C6)', async (_name, operate) => {
    const run = await db.submit({ a: [], b: [] }, { deadlineMs: 1_000 });
    const a = (await db.claim({ queues: { default: 1 } }))[0]!;
    const worker = await database.open();
    await worker.query('begin');
    await book(worker, a);
    await database.moveClock(60_000);
    expect((await operate(db, run)).length).toBeGreaterThan(0);
    await worker.query('commit');
    expect(await booked()).toBe(1);
  });
});
