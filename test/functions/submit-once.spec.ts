import { Gates } from '../support/gate.js';
import { EngineDatabase, type EngineSession } from '../support/engine-sql.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

const outcomes = (rows: { outcome: string }[]) => rows.map((row) => row.outcome);

describe('cyclone_submit_once', () => {
  it('makes one run for each workflow and key, and finds it again in whatever state (R7)', async () => {
    const [first] = await db.submitOnce(['k'], { a: [], b: ['a'] });
    expect(first).toMatchObject({ outcome: 'created', same_input: true });
    expect(await db.states(first?.run_id ?? '')).toBe('running: a=available b=pending');
    expect(await db.submitOnce(['k'])).toEqual([{ ...first, outcome: 'exists' }]);
    await db.failForGood(await db.claimOne());
    expect((await db.run(first?.run_id ?? '')).state).toBe('failed');
    expect(await db.submitOnce(['k'])).toEqual([{ ...first, outcome: 'exists' }]);
    expect(outcomes(await db.submitOnce(['k'], { a: [] }, { workflow: 'other' }))).toEqual(['created']);
    expect(await db.value('select count(*)::int from cyclone_runs')).toBe(2);
  });

  it('finds the run of its own workflow when another one has the key too (F42)', async () => {
    const [flow] = await db.submitOnce(['k']);
    const [other] = await db.submitOnce(['k'], { a: [] }, { workflow: 'other', hashes: ['of the other'] });
    expect(await db.submitOnce(['k'])).toEqual([{ ...flow, outcome: 'exists' }]);
    const again = await db.submitOnce(['k'], { a: [] }, { workflow: 'other', hashes: ['of the other'] });
    expect(again).toEqual([{ ...other, outcome: 'exists' }]);
  });

  it('says created again to a submit that comes again with its token, and to no other one (F46)', async () => {
    const tokens = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002'];
    const first = await db.submitOnce(['k', 'k'], { a: [] }, { tokens });
    expect(outcomes(first)).toEqual(['created', 'exists']);
    expect(await db.submitOnce(['k', 'k'], { a: [] }, { tokens })).toEqual(first);
    expect(outcomes(await db.submitOnce(['k']))).toEqual(['exists']);
    expect(await db.value('select count(*)::int from cyclone_steps')).toBe(1);
  });

  it('tells whether the input is the same (R7)', async () => {
    await db.submitOnce(['k'], { a: [] }, { hashes: ['one'] });
    const [again] = await db.submitOnce(['k'], { a: [] }, { hashes: ['two'] });
    expect(again).toMatchObject({ outcome: 'exists', same_input: false });
  });

  it('makes one run of a key that a batch has twice, and answers for every entry (R7, R8)', async () => {
    const rows = (await db.submitOnce(['b', 'a', 'b'])).toSorted((x, y) => x.run_index - y.run_index);
    expect(rows.map((row) => `${row.run_index} ${row.outcome}`)).toEqual(['1 created', '2 created', '3 exists']);
    expect(rows[2]?.run_id).toBe(rows[0]?.run_id);
    expect(await db.value('select count(*)::int from cyclone_steps')).toBe(2);
  });

  it('frees the key when the run is gone (R7)', async () => {
    const [first] = await db.submitOnce(['k']);
    await db.query('delete from cyclone_steps');
    await db.query('delete from cyclone_runs');
    const [second] = await db.submitOnce(['k']);
    expect(second).toMatchObject({ outcome: 'created' });
    expect(second?.run_id).not.toBe(first?.run_id);
  });

  it('waits for another transaction with the same key, and finds its run or makes it itself (R7)', async () => {
    for (const end of ['commit', 'rollback']) {
      const gates = await Gates.install(database);
      const [mine, yours] = [await database.open(), await database.open()];
      await mine.query('begin');
      const [created] = await mine.submitOnce([end]);
      const waiting = await gates.park(yours, yours.submitOnce([end]));
      await mine.query(end);
      const [other] = await waiting.result;
      expect(other?.outcome).toBe(end === 'commit' ? 'exists' : 'created');
      expect(other?.run_id === created?.run_id).toBe(end === 'commit');
    }
  });

  it('says busy after the wait that was allowed, and the transaction of the caller goes on (R6, C7)', async () => {
    const [mine, yours] = [await database.open(), await database.open()];
    await mine.query('begin');
    await mine.submitOnce(['k']);
    await yours.query(`begin; set local lock_timeout = '17s'`);
    expect(outcomes(await yours.submitOnce(['free', 'k', 'also free'], { a: [] }, { waitMs: 20 })).toSorted()).toEqual([
      'busy',
      'created',
      'created',
    ]);
    expect(await yours.value('show lock_timeout')).toBe('17s');
    await yours.query('commit');
    await mine.query('rollback');
    expect(await db.value('select array_agg(once_key order by once_key) from cyclone_runs')).toEqual([
      'also free',
      'free',
    ]);
    expect(await db.value('select count(*)::int from cyclone_steps')).toBe(2);
  });

  it('never deadlocks with a batch that has the same keys in the opposite order (C7)', async () => {
    for (let round = 0; round < 10; round++) {
      const keys = Array.from({ length: 40 }, (_, i) => `${round}-${i}`);
      const [mine, yours] = [await database.open(), await database.open()];
      const answers = await Promise.all([mine.submitOnce(keys), yours.submitOnce(keys.toReversed())]);
      const all = answers.flatMap(outcomes);
      expect(all.filter((outcome) => outcome === 'created')).toHaveLength(keys.length);
      expect(all.filter((outcome) => outcome === 'exists')).toHaveLength(keys.length);
    }
  });

  it('takes the keys in sorted order, whatever the order of the batch (C7)', async () => {
    const gates = await Gates.install(database);
    const [mine, yours] = [await database.open(), await database.open()];
    await mine.query('begin');
    await mine.submitOnce(['m']);
    await yours.query('begin');
    const parked = await gates.park(yours, yours.submitOnce(['z', 'm', 'a']));
    await mine.query('savepoint before');
    // The other one holds a and waits at m: z is free, a is not.
    expect(outcomes(await mine.submitOnce(['z'], { a: [] }, { waitMs: 20 }))).toEqual(['created']);
    await mine.query('rollback to before');
    expect(outcomes(await mine.submitOnce(['a'], { a: [] }, { waitMs: 20 }))).toEqual(['busy']);
    await mine.query('commit');
    expect(outcomes(await parked.result).toSorted()).toEqual(['created', 'created', 'exists']);
    await yours.query('commit');
  });

  it.each(['repeatable read', 'serializable'])(
    'tells a conflict in a %s transaction that cannot see the run, and does not abort it (C7)',
    async (isolation) => {
      const old = await database.open();
      await old.query(`begin isolation level ${isolation}`);
      await old.query('select count(*) from cyclone_runs');
      const [winner] = await db.submitOnce(['k']);
      const rows = await old.submitOnce(['free', 'k']);
      expect(outcomes(rows).toSorted()).toEqual(['conflict', 'created']);
      await old.query('commit');
      expect(await db.submitOnce(['k'])).toEqual([{ ...winner, outcome: 'exists' }]);
    },
  );
});
