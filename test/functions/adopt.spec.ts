import {
  EngineDatabase,
  markOf,
  told,
  type EngineEvent,
  type EngineSession,
  type TestLease,
} from '../support/engine-sql.js';
import { Gates } from '../support/gate.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

const columns = (leases: TestLease[]) => [
  leases.map((l) => l.run_id),
  leases.map((l) => l.node),
  leases.map((l) => l.generation),
];

/** What a lane asks after a call whose answer was lost. */
function adopt(
  doubt: TestLease[],
  known: TestLease[] = [],
  session = 'cyclone-lane-1',
  owner = 'me',
): Promise<EngineEvent[]> {
  return db.call('cyclone_adopt', owner, session, ...columns(doubt), ...columns([...doubt, ...known]));
}

const lane = async () => {
  const session = await database.open();
  await session.query(`set application_name = 'cyclone-lane-1'`);
  return session;
};

describe('cyclone_adopt (C4)', () => {
  it('tells what became of the completions, and what the lost call claimed', async () => {
    const [completed, cancelled, unsettled, lost, purged] = await db.submitMany(
      ['completed', 'cancelled', 'unsettled', 'lost', 'purged'].map((node) => ({ [node]: [] })),
    );
    const doubt = await db.claim();
    await db.flush(doubt.filter(({ node }) => node === 'completed'));
    await db.cancel(cancelled!);
    await db.settle(
      'released',
      doubt.find(({ node }) => node === 'lost')!,
    );
    await db.claim({ owner: 'other' });
    await db.query('with s as (delete from cyclone_steps where run_id = $1) delete from cyclone_runs where id = $1', [
      purged,
    ]);
    const fresh = await db.submit({ fresh: { input: { x: 1 }, maxAttempts: 3, policy: { timeoutMs: 60_000 } } });
    await db.claim();
    const answer = await adopt(doubt);
    expect(told(answer).toSorted()).toEqual([
      'claimed fresh',
      'completed cancelled',
      'completed completed',
      'lease_lost lost',
      'lease_lost purged',
      'unsettled unsettled',
    ]);
    const of = (node: string) => answer.find((row) => row.node === node);
    expect(of('completed')).toMatchObject({ run_id: completed, generation: 1, info: { state: 'completed' } });
    expect(of('cancelled')?.info).toEqual({ state: 'cancelled' });
    expect(of('unsettled')).toMatchObject({ run_id: unsettled, info: { state: 'running' } });
    expect(of('lost')).toMatchObject({ run_id: lost, generation: 1 });
    expect(of('fresh')).toMatchObject({
      run_id: fresh,
      attempt: 1,
      generation: 1,
      max_attempts: 3,
      timeout_ms: '60000',
      input: { x: 1 },
      queue: 'default',
      kind: 'work',
    });
  });

  it('does not give out what the process knows already, nor what belongs to others', async () => {
    await db.submitMany([{ known: [] }, { theirs: [] }, { fresh: [] }]);
    const known = await db.claim({ queues: { default: 1 } });
    await db.claim({ owner: 'other', queues: { default: 1 } });
    await db.claim();
    expect(told(await adopt([], known))).toEqual(['claimed fresh']);
  });

  it('gives out a known step again when it was claimed anew in a later generation', async () => {
    await db.submit({ a: [] });
    const old = await db.claimOne();
    await db.settle('released', old);
    await db.claim();
    expect(await adopt([], [old])).toMatchObject([{ event: 'claimed', node: 'a', generation: 2 }]);
    expect(told(await adopt([old]))).toEqual(['lease_lost a', 'claimed a']);
  });

  it('ends the session of the lost call first, so that nothing can commit behind its back', async () => {
    const run = await db.submit({ a: [] });
    const a = await db.claimOne();
    const lost = await lane();
    await lost.query('begin');
    await lost.flush([a]);
    expect(told(await adopt([a]))).toEqual(['unsettled a']);
    await expect(lost.query('commit')).rejects.toThrow(/terminat|not queryable/);
    expect(await db.states(run)).toBe('running: a=running');
    expect(told(await db.flush([a]))).toEqual(['run_completed']);
  });

  it('ends a session that stands in the middle of the call', async () => {
    const gates = await Gates.install(database);
    const run = await db.submit({ a: [] });
    const a = await db.claimOne();
    const lost = await lane();
    await gates.shut('step a completed');
    const parked = await gates.park(lost, lost.flush([a]));
    const ended = parked.result.catch((error: Error) => error.message);
    expect(told(await adopt([a]))).toEqual(['unsettled a']);
    expect(await ended).toMatch(/terminat/);
    expect(await db.states(run)).toBe('running: a=running');
  });

  it('does not wait for a step that somebody else has locked, and so meets no sweep in a deadlock (C2)', async () => {
    const run = await db.submit({ a: [], b: { priority: 1 } });
    const [a, b] = [
      await db.claimOne({ queues: { default: 1 }, leaseMs: 600_000 }),
      await db.claimOne({ queues: { default: 1 } }),
    ];
    expect([a.node, b.node]).toEqual(['a', 'b']);
    await database.moveClock(60_000);
    const gates = await Gates.install(database);
    const sweeper = await database.open();
    await gates.shut('step b discarded');
    const sweep = await gates.park(sweeper, sweeper.sweep({ maxReclaims: 0 }));
    // The sweep holds b and will cancel a.
    const adopter = db.call('cyclone_adopt', 'me', 'cyclone-lane-1', ...columns([a, b]), ...columns([a, b]));
    const first = await Promise.race([adopter, gates.park(db, adopter)]);
    await gates.open('step b discarded');
    expect(told(await sweep.result)).toEqual(['discarded b', 'cancelled a', 'run_failed']);
    expect(first).toMatchObject([{ event: 'wait' }]);
    expect(told(await adopt([a, b]))).toEqual(['completed a', 'completed b']);
    expect(await db.states(run)).toBe('failed: a=cancelled b=discarded');
  });

  it('leaves other sessions of the process alone, and its own', async () => {
    const other = await database.open();
    await other.query(`set application_name = 'cyclone-lane-2'`);
    await db.query(`set application_name = 'cyclone-lane-1'`);
    expect(await adopt([])).toEqual([]);
    await db.query('reset application_name');
    expect(await other.value('select 1')).toBe(1);
  });
});

describe('cyclone_end_backends (C3)', () => {
  it('ends the session that holds the completion transaction of a lease that was taken away', async () => {
    await db.submit({ a: [] });
    const first = await db.claimOne({ owner: 'stopped' });
    const stopped = await database.open();
    await db.query('create table ledger (run_id bigint, node text, primary key (run_id, node))');
    await stopped.beginCompletion(first);
    await stopped.query('insert into ledger values ($1, $2)', [first.run_id, 'a']);

    await database.moveClock(60_000);
    expect(told(await db.sweep())).toEqual(['reclaimed a']);
    expect(await db.value('select cyclone_end_backends($1)', [[markOf(first), 'cyclone:0:none:1']])).toBe(1);

    // Without that the successor would wait for ever on the row of the first.
    const second = await db.claimOne();
    await db.beginCompletion(second);
    await db.query('insert into ledger values ($1, $2) on conflict do nothing', [second.run_id, 'a']);
    expect(told(await db.complete(second))).toEqual(['run_completed']);
    await db.query('commit');
    expect(await db.value('select count(*)::int from ledger')).toBe(1);
    await db.query('drop table ledger');
  });

  it('ends nothing else, and says null to a role that may not', async () => {
    expect(await db.value('select cyclone_end_backends($1)', [['nothing']])).toBe(0);
    const victim = await database.open();
    await victim.query(`set application_name = 'marked'`);
    const role = `role_${database.name}`;
    await db.client.query(
      `create role ${role}; grant execute on all functions in schema public to ${role}; set role ${role}`,
    );
    try {
      expect(await db.value('select cyclone_end_backends($1)', [['marked']])).toBeNull();
    } finally {
      await db.client.query(`reset role; drop owned by ${role}; drop role ${role}`);
    }
    expect(await victim.value('select 1')).toBe(1);
  });
});

describe('cyclone_transaction_status (C4)', () => {
  it('decides a commit whose answer was lost', async () => {
    const worker = await database.open();
    const status = (xid: string) => db.value('select cyclone_transaction_status($1, null, null, null)', [xid]);
    for (const [end, expected] of [
      ['commit', 'committed'],
      ['rollback', 'aborted'],
    ] as const) {
      await worker.query('begin');
      const xid = await worker.value<string>('select pg_current_xact_id()::text');
      expect(await status(xid)).toBe('in progress');
      await worker.query(end);
      expect(await status(xid)).toBe(expected);
    }
  });

  it('asks the row of the step, because after a crash or a failover the id may be of another transaction or of none', async () => {
    const [done, open] = await db.submitMany([{ done: [] }, { open: [] }]);
    const claimed = await db.claim();
    await db.flush(claimed.filter(({ node }) => node === 'done'));
    const status = (xid: string, run: string | undefined, node: string) =>
      db.value('select cyclone_transaction_status($1, $2, $3, 1)', [xid, run, node]);
    const committed = await db.value<string>('select pg_current_xact_id()::text');
    const future = String(2n ** 40n);
    for (const xid of [committed, future]) {
      expect(await status(xid, done, 'done')).toBe('committed');
      expect(await status(xid, open, 'open')).toBe('aborted');
    }
    expect(await db.value('select cyclone_transaction_status($1, $2, $3, 2)', [committed, done, 'done'])).toBe(
      'aborted',
    );
    expect(await status(future, '999999', 'purged')).toBe('aborted');
    expect(await status(committed, '999999', 'purged')).toBe('committed');
  });
});
