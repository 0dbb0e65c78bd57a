import { EngineDatabase, told, type EngineSession } from '../support/engine-sql.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

/** Claims one step after the other and gives their nodes. */
async function drain(options: Parameters<EngineSession['claim']>[0] = {}): Promise<string[]> {
  const nodes: string[] = [];
  for (;;) {
    const [claimed] = await db.claim({ queues: { default: 1 }, ...options });
    if (!claimed) return nodes;
    nodes.push(claimed.node);
  }
}

describe('a claim', () => {
  it('writes the lease and touches neither the attempt nor the reclaims (R10, R11)', async () => {
    const run = await db.submit({ a: { input: { x: 1 }, maxAttempts: 7, policy: { timeoutMs: 60_000 } } });
    const claimed = await db.claimOne({ owner: 'w1', leaseMs: 30_000 });
    expect(claimed).toEqual({
      event: 'claimed',
      run_id: run,
      node: 'a',
      kind: 'work',
      queue: 'default',
      attempt: 1,
      generation: 1,
      node_type: 'step',
      max_attempts: 7,
      timeout_ms: '60000',
      input: { x: 1 },
      info: null,
    });
    expect(await db.step(run, 'a')).toMatchObject({
      state: 'running',
      lease_owner: 'w1',
      lease_generation: 1,
      attempt: 1,
      reclaims: 0,
    });
    expect(await db.query('select lease_expiry - started_at as lease from cyclone_steps')).toMatchObject([
      { lease: { seconds: 30 } },
    ]);
  });

  it('never leases a step beyond its timeout (R10)', async () => {
    await db.submit({ a: { policy: { timeoutMs: 2_000 } } });
    await db.claimOne({ leaseMs: 30_000 });
    expect(await db.query('select lease_expiry - started_at as lease from cyclone_steps')).toMatchObject([
      { lease: { seconds: 2 } },
    ]);
  });

  it('takes the lower priority number first, then the older start, then the smaller run id (R10)', async () => {
    const now = Date.now();
    const at = (secondsAgo: number) => ({ startAt: new Date(now - secondsAgo * 1000) });
    await db.submit({ 'priority 5, oldest': { priority: 5 } }, at(90));
    await db.submit({ 'second by id': {} }, at(30));
    await db.submit({ 'third by id': {} }, at(30));
    await db.submit({ 'first by age': {} }, at(60));
    await db.submit({ 'priority -1': { priority: -1 } }, at(0));
    expect(await drain()).toEqual(['priority -1', 'first by age', 'second by id', 'third by id', 'priority 5, oldest']);
  });

  it('keeps that order across kinds (R10)', async () => {
    const now = Date.now();
    const ages = [50, 10, 40, 20, 30];
    for (const [i, age] of ages.entries()) {
      await db.submit({ [`${age} s old`]: { kind: i % 2 ? 'x' : 'y' } }, { startAt: new Date(now - age * 1000) });
    }
    expect(await drain({ kinds: ['x', 'y', 'z'] })).toEqual([50, 40, 30, 20, 10].map((age) => `${age} s old`));
  });

  it('is not held up by steps of the future, even at the head of the queue (S75)', async () => {
    await db.submitMany(
      Array.from({ length: 50 }, () => ({ later: { priority: -5 } })),
      { delayMs: 3_600_000 },
    );
    await db.submitMany(Array.from({ length: 10 }, () => ({ now: {} })));
    expect(told(await db.claim({ queues: { default: 5 } }))).toEqual(Array.from({ length: 5 }, () => 'claimed now'));
    await database.moveClock(3_600_000);
    expect(told(await db.claim({ queues: { default: 2 } }))).toEqual(['claimed later', 'claimed later']);
  });

  it('takes only kinds and queues that are served (R10, S27)', async () => {
    await db.submit({ a: { kind: 'served' } });
    await db.submit({ b: { kind: 'unknown', priority: -1 } });
    await db.submit({ c: { kind: 'served', queue: 'elsewhere', priority: -1 } });
    expect(told(await db.claim({ kinds: ['served', 'other'], queues: { default: 9, third: 9 } }))).toEqual([
      'claimed a',
    ]);
    expect(await db.claim({ kinds: [], queues: { default: 9, elsewhere: 9 } })).toEqual([]);
  });

  it('takes no more from a queue than it has free slots there (R10)', async () => {
    await db.submitMany(Array.from({ length: 5 }, () => ({ a: { queue: 'x' }, b: { queue: 'y' }, c: { queue: 'z' } })));
    const claimed = await db.claim({ queues: { x: 2, y: 3, z: 0 } });
    expect(claimed.map(({ queue }) => queue).toSorted()).toEqual(['x', 'x', 'y', 'y', 'y']);
  });

  it('takes exactly what was asked for, whatever plan the server prefers (S19)', async () => {
    await db.submitMany(Array.from({ length: 50 }, () => ({ a: [] })));
    await db.query(
      `set enable_hashjoin = off; set enable_mergejoin = off; set enable_sort = off; set enable_material = off;
      set enable_indexscan = off; set enable_bitmapscan = off`.replaceAll('\n', ' '),
    );
    try {
      expect(await db.claim({ queues: { default: 5 } })).toHaveLength(5);
      expect(await db.value(`select count(*)::int from cyclone_steps where state = 'running'`)).toBe(5);
    } finally {
      await db.query('reset all');
    }
  });

  it('passes over steps that another transaction has locked, and waits for none (R10)', async () => {
    await db.submitMany(Array.from({ length: 4 }, () => ({ a: [] })));
    const other = await database.open();
    await other.query('begin');
    const theirs = await other.claim({ owner: 'other', queues: { default: 2 } });
    const mine = await db.claim({ queues: { default: 2 } });
    await other.query('commit');
    const claimed = [...theirs, ...mine].map(({ run_id: run }) => run);
    expect(new Set(claimed).size).toBe(4);
  });

  it('goes further down a queue whose head another worker is claiming, in its order (R10)', async () => {
    await db.submitMany(Array.from({ length: 120 }, (_, i) => ({ [`n${i}`]: {} })));
    const other = await database.open();
    await other.query('begin');
    expect(await other.claim({ owner: 'other', queues: { default: 90 } })).toHaveLength(90);
    expect(told(await db.claim({ queues: { default: 1, elsewhere: 5 } }))).toEqual(['claimed n90']);
    expect(told(await db.claim({ queues: { default: 3 } }))).toEqual([91, 92, 93].map((i) => `claimed n${i}`));
    expect(await db.claim({ queues: { default: 50 } })).toHaveLength(26);
    expect(await db.claim({ queues: { default: 2 } })).toEqual([]);
    await other.query('rollback');
    expect(told(await db.claim({ queues: { default: 2 } }))).toEqual(['claimed n0', 'claimed n1']);
  });

  it('fills the places that others have left it of the first ones, and never more than it has', async () => {
    await db.submitMany(Array.from({ length: 80 }, (_, i) => ({ [`n${i}`]: { queue: i % 2 ? 'odd' : 'even' } })));
    const other = await database.open();
    await other.query('begin');
    await other.claim({ owner: 'other', queues: { odd: 3 } });
    const mine = told(await db.claim({ queues: { odd: 2, even: 2 } }));
    expect(mine.toSorted()).toEqual(['claimed n0', 'claimed n2', 'claimed n7', 'claimed n9']);
    await other.query('commit');
  });

  it('never gives one step to two of many claimers (S76)', async () => {
    await db.submitMany(Array.from({ length: 300 }, () => ({ a: [] })));
    const sessions = await Promise.all(Array.from({ length: 4 }, () => database.open()));
    const claimed = await Promise.all(
      sessions.map(async (session, i) => {
        const mine: string[] = [];
        for (;;) {
          const batch = await session.claim({ owner: `w${i}`, queues: { default: 7 } });
          if (batch.length === 0) return mine;
          mine.push(...batch.map(({ run_id: run }) => run));
        }
      }),
    );
    expect(claimed.flat()).toHaveLength(300);
    expect(new Set(claimed.flat()).size).toBe(300);
  });

  it('takes only so many bytes of input, but always one step (C13)', async () => {
    // Random bytes as hex: the server can compress them by half, and has to count what it sends.
    const blob = await db.value<string>(`select string_agg(md5(random()::text), '') from generate_series(1, 3200)`);
    await db.submitMany(Array.from({ length: 7 }, () => ({ a: { input: { blob } } })));
    expect(await db.claim({ maxBytes: 250_000 })).toHaveLength(2);
    expect(await db.claim({ maxBytes: 10 })).toHaveLength(1);
    expect(await db.claim({ maxBytes: 10, queues: { default: 2 } })).toHaveLength(1);
    expect(await db.claim()).toHaveLength(3);
  });

  it('finds work beyond the first of many kinds and priorities', async () => {
    await db.submitMany(Array.from({ length: 60 }, (_, i) => ({ [`n${i}`]: { kind: `k${i % 6}`, priority: i % 10 } })));
    const kinds = Array.from({ length: 6 }, (_, i) => `k${i}`);
    const priorities = (await drain({ kinds })).map((node) => Number(node.slice(1)) % 10);
    expect(priorities).toEqual(priorities.toSorted((a, b) => a - b));
    expect(priorities).toHaveLength(60);
  });
});

describe('cyclone_claimable', () => {
  it('reads up to twice the free slots of each queue, best first, without a lock', async () => {
    await db.submitMany(Array.from({ length: 9 }, (_, i) => ({ [`n${i}`]: { priority: i } })));
    await db.query('begin');
    const found = await db.query(
      `select node, place from cyclone_claimable(cyclone_now(), '{default}', '{2}', '{work}', null) order by place`,
    );
    expect(found).toEqual([0, 1, 2, 3].map((i) => ({ node: `n${i}`, place: `${i + 1}` })));
    expect(await db.value('select pg_current_xact_id_if_assigned()')).toBeNull();
    await db.query('rollback');
  });
});

describe('a session whose searches walk over too much (DESIGN §8)', () => {
  let lane: EngineSession;
  /** Entries of the claim index that were read. */
  const reads = async (): Promise<number> => {
    await lane.query('select pg_stat_force_next_flush()');
    return db.value(`select idx_tup_read::int from pg_stat_user_indexes where indexrelname = 'cyclone_steps_claim'`);
  };
  /** How many entries more than it can use a search may walk over. */
  const allow = (entries: number) =>
    lane.query(`select set_config('cyclone.claim_entries', $1, false)`, [`${entries}`]);
  /** How long what it notes of its search holds. */
  const keepNote = (interval: string) =>
    lane.query(
      `select set_config('cyclone.claim_heads',
         jsonb_set(current_setting('cyclone.claim_heads')::jsonb, '{until}', to_jsonb(now() + $1::interval))::text, false)`,
      [interval],
    );
  const submit = (name: string, age: number, priority = 0) =>
    db.submit({ [name]: { priority } }, { startAt: new Date(Date.now() - age * 1000) });
  const one = { queues: { default: 1 } };

  beforeEach(async () => {
    lane = await database.open();
    await allow(-1_000_000);
  });

  it('does not walk again over what was claimed, although no vacuum may remove it', async () => {
    const old = await database.open();
    await old.query('begin isolation level repeatable read');
    await old.query('select 1 from cyclone_runs');
    await db.submitMany(Array.from({ length: 1_200 }, (_, i) => ({ [`n${i}`]: {} })));
    await drain({ queues: { default: 1_000 } });
    await db.submitMany(Array.from({ length: 12 }, (_, i) => ({ [`m${i}`]: {} })));
    await allow(1_000_000);
    let before = await reads();
    await lane.claim(one);
    expect((await reads()) - before).toBeGreaterThan(1_200);
    await allow(-1_000_000);
    await lane.claim(one);
    before = await reads();
    for (let i = 0; i < 5; i++) {
      await keepNote('1 day');
      expect(await lane.claim(one)).toHaveLength(1);
    }
    expect((await reads()) - before).toBeLessThan(200);
    await old.query('rollback');
  });

  it('overlooks nothing: what does not fill its slots is looked for everywhere, and an older step waits no longer than the note', async () => {
    for (const age of [90, 60, 30]) await submit(`${age}`, age);
    expect(told(await lane.claim(one))).toEqual(['claimed 90']);
    await submit('older', 120);
    expect(told(await lane.claim(one))).toEqual(['claimed 60']);
    expect(told(await lane.claim({ queues: { default: 2 } }))).toEqual(['claimed older', 'claimed 30']);
    await submit('late', 10);
    await submit('early', 20);
    await lane.claim(one);
    await submit('first', 40);
    await keepNote('0 s');
    expect(told(await lane.claim(one))).toEqual(['claimed first']);
  });

  it('goes on through the priorities in their order, and notes nothing for other kinds', async () => {
    await submit('a', 90, 1);
    await submit('b', 80, 1);
    await submit('c', 99, 2);
    await submit('d', 70, 1);
    expect(told(await lane.claim(one))).toEqual(['claimed a']);
    expect(told(await lane.claim({ queues: { default: 2 } }))).toEqual(['claimed b', 'claimed d']);
    expect(told(await lane.claim({ ...one, kinds: ['other'] }))).toEqual([]);
    expect(told(await lane.claim(one))).toEqual(['claimed c']);
  });

  it('is told what is due although it began to look too late', async () => {
    await submit('a', 10);
    await submit('b', 5);
    await lane.claim(one);
    await lane.claim(one);
    await submit('older', 20);
    const tick = await lane.call('cyclone_tick', 'me', ['default'], ['work'], 20, true, 100, null, 1_000, null);
    expect(tick.map(({ event }) => event)).toContain('due');
  });
});
