import type { EntityManager } from 'typeorm';
import { deferred, dropTemplate, Fixture, job } from './fixture.js';

// What others left on the connections of the pool, or set for the role or the database, changes nothing of what the engine stores.

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

const WORDS = 'ü😀 \\ "quoted" NULL null';

/** Runs `sql` on every connection of the pool, and leaves it there. Gives the numbers of their sessions. */
async function onEveryConnection(sql: string, poolSize: number): Promise<number[]> {
  const runners = Array.from({ length: poolSize }, () => fixture.dataSource.createQueryRunner());
  const pids: number[] = [];
  for (const runner of runners) {
    await runner.connect();
    const [row] = (await runner.query('select pg_backend_pid() as pid')) as [{ pid: number }];
    pids.push(row.pid);
  }
  for (const runner of runners) await runner.query(sql);
  for (const runner of runners) await runner.release();
  return pids;
}

/** A fixture with another one to look at things with, whose connections are in order. */
async function withObserver(poolSize: number): Promise<Fixture> {
  fixture = await Fixture.open({ poolSize });
  return fixture.another({ poolSize: 2 });
}

const LEFT = [
  ['client_encoding LATIN1', `set client_encoding = 'LATIN1'`],
  ['client_encoding EUC_JP', `set client_encoding = 'EUC_JP'`],
  ['array_nulls off', 'set array_nulls = off'],
  ['a read-only session', 'set session characteristics as transaction read only'],
  ['serializable transactions', 'set session characteristics as transaction isolation level serializable, deferrable'],
  ['a search_path', 'set search_path = shadow'],
  ['a role without rights', 'set role cyclone_no_rights'],
  ['statement_timeout 1 ms', 'set statement_timeout = 1'],
  ['lock_timeout 1 ms', 'set lock_timeout = 1'],
  ['DateStyle', `set datestyle = 'German, DMY'`],
  ['IntervalStyle', `set intervalstyle = 'sql_standard'`],
  ['TimeZone', `set timezone = 'Asia/Kathmandu'`],
  ['bytea_output', `set bytea_output = 'escape'`],
  ['extra_float_digits', 'set extra_float_digits = -15'],
  ['standard_conforming_strings off', 'set standard_conforming_strings = off'],
  ['triggers that do not fire', 'set session_replication_role = replica'],
  ['row_security off', 'set row_security = off'],
] as const;

describe('connections on which somebody has left settings', () => {
  it.each(LEFT)('with %s store and read the same (F54)', async (_, sql) => {
    const poolSize = 4;
    const observer = await withObserver(poolSize);
    await observer.rows(
      `do $$ begin create role cyclone_no_rights; exception when duplicate_object or unique_violation then null; end $$`,
    );
    await observer.rows('create schema shadow');
    await observer.rows('create table shadow.cyclone_runs (like cyclone_runs)');
    await observer.rows('create table shadow.cyclone_steps (like cyclone_steps)');
    await onEveryConnection(sql, poolSize);

    const made = await fixture.submitOne({
      ...job('work', { words: WORDS }),
      tags: JSON.stringify({ words: WORDS }),
      resultNode: 'work',
    });
    const [stored] = await observer.rows(
      `select r.result_node, r.tags->>'words' as words, s.input->>'words' as input, s.input_spec, s.backoff, r.deadline_ms
         from cyclone_runs r join cyclone_steps s on s.run_id = r.id where r.id = $1`,
      [made],
    );
    expect(stored).toEqual({
      result_node: 'work',
      words: WORDS,
      input: WORDS,
      input_spec: null,
      backoff: null,
      deadline_ms: null,
    });

    const worker = fixture.worker({
      work: async (input: { words: string }, ctx) => {
        await ctx.completionTx();
        return { words: input.words, more: 0.1 + 0.2 };
      },
    });
    await worker.start();
    await observer.until(`select state = 'completed' from cyclone_runs where id = $1`, [made]);
    await worker.stop(); // it keeps connections for itself
    await onEveryConnection(sql, poolSize);
    const outcome = await fixture.engine.connections.use((session) => fixture.engine.runs.runOutcome(session, made));
    expect(JSON.parse(outcome?.output ?? '')).toEqual({ words: WORDS, more: 0.1 + 0.2 });
    const info = await fixture.engine.connections.use((session) => fixture.engine.runs.runInfo(session, made));
    const clean = await observer.engine.connections.use((session) => observer.engine.runs.runInfo(session, made));
    expect(info).toEqual(clean);
    const [step] = await observer.rows('select attempt, output from cyclone_steps where run_id = $1', [made]);
    expect(step).toEqual({ attempt: 1, output: { words: WORDS, more: 0.1 + 0.2 } });
  });

  it('keep what was left there, because it may be meant (F54)', async () => {
    await withObserver(1);
    const [pid] = await onEveryConnection(`set client_encoding = 'LATIN1'; set array_nulls = off`, 1);
    await fixture.submitOne(job('work', WORDS));
    const [row] = await fixture.rows(
      `select pg_backend_pid() as pid, current_setting('client_encoding') as encoding, current_setting('array_nulls') as nulls`,
    );
    expect(row).toEqual({ pid, encoding: 'LATIN1', nulls: 'off' });
  });

  it('are cut when they cannot write, so that nobody gets them (F10)', async () => {
    await withObserver(1);
    const [pid] = await onEveryConnection('set session characteristics as transaction read only', 1);
    await fixture.submitOne(job('work'));
    const [row] = await fixture.rows('select pg_backend_pid() as pid');
    expect(row?.pid).not.toBe(pid);
  });

  it('cost no call more when nothing is wrong with them (F54)', async () => {
    const calls: string[] = [];
    fixture = await Fixture.open({ observer: (call, phase) => void (phase === 'sent' && calls.push(call)) });
    const submit = (): Promise<unknown> =>
      fixture.engine.connections.use((session) => fixture.engine.submits.submit(session, [job('work')]));
    await submit();
    expect(calls).toEqual(['submit']);
    calls.length = 0;
    await onEveryConnection('set array_nulls = off', 10);
    await submit();
    expect(calls).toEqual(['submit', 'beginOnOwnTerms', 'submit', 'commitOnOwnTerms']);
  });

  it('refuse to complete a step whose handler has changed the encoding of its transaction (F54)', async () => {
    fixture = await Fixture.open();
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          const tx = await ctx.completionTx();
          if (ctx.attempt === 1) await tx.query(`set local client_encoding = 'LATIN1'`);
          return WORDS;
        },
      })
      .start();
    const id = await fixture.submitOne(
      job('work', null, { policy: { backoff: { baseMs: 1, factor: 1, maxMs: 1, jitter: false } } }),
    );
    await fixture.idle();
    expect(fixture.stepEvents('retried')[0]?.error).toContain('client_encoding = LATIN1');
    expect((await fixture.step(id, 'work')).output).toBe(WORDS);
  });

  it('complete a step whose handler works as another role and under short limits (F54)', async () => {
    const observer = await withObserver(4);
    await observer.rows(
      `do $$ begin create role cyclone_no_rights; exception when duplicate_object or unique_violation then null; end $$`,
    );
    const locked = deferred();
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          const tx = await ctx.completionTx();
          await tx.query(
            `set local role cyclone_no_rights; set local statement_timeout = '1h'; set local lock_timeout = 1`,
          );
          locked.resolve();
          return 'done';
        },
      })
      .start();
    const id = await fixture.submitOne(job('work'));
    await locked.promise;
    await fixture.idle();
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'completed', attempt: 1, reclaims: 0 });
  });
});

describe('settings of the database', () => {
  it.each([
    'array_nulls = off',
    `client_encoding = 'LATIN1'`,
    'statement_timeout = 1',
    `default_transaction_isolation = 'serializable'`,
  ])('like %s, made under a live worker, change nothing (F23)', async (setting) => {
    const observer = await withObserver(4);
    await observer.rows(`alter database ${fixture.database.name} set ${setting}`);
    await observer.rows(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    );
    const write = (tx: EntityManager, id: string) => tx.query('insert into ledger values ($1, $2, 1)', [id, 'work']);
    await fixture
      .worker({
        work: async (input: string, ctx) => {
          const tx = await ctx.completionTx();
          if (!setting.startsWith('statement_timeout')) await write(tx, ctx.runId);
          return input;
        },
      })
      .start();
    const caller = await fixture.another({ poolSize: 2 });
    const ids = await Promise.all(Array.from({ length: 5 }, () => caller.submitOne(job('work', WORDS))));
    await observer.until(
      `select count(*) = 5 from cyclone_steps where state = 'completed' and attempt = 1 and output = to_jsonb($1::text)`,
      [WORDS],
    );
    expect(ids).toHaveLength(5);
  });
});

describe('a database that is read-only for a while', () => {
  it('is worked with as soon as it is over, and health says so meanwhile (F10)', async () => {
    const observer = await withObserver(4);
    const { name } = fixture.database;
    const cut = (): Promise<unknown> =>
      observer.rows(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
      );
    const worker = fixture.worker({
      work: async (_: unknown, ctx) => {
        await (await ctx.completionTx()).query('insert into ledger values ($1, $2, 1)', [ctx.runId, ctx.node]);
      },
    });
    await worker.start();
    await observer.rows(`alter database ${name} set default_transaction_read_only = on`);
    await cut();
    while (!worker.health().problems.some((problem) => problem.includes('read-only'))) await fixture.pause();
    expect(worker.health().healthy).toBe(false);

    const writer = await fixture.another({ poolSize: 1, extra: { options: '-c default_transaction_read_only=off' } });
    const ids = await Promise.all(Array.from({ length: 20 }, () => writer.submitOne(job('work'))));
    await writer.rows(`alter database ${name} reset default_transaction_read_only`);
    await writer.until(
      `select count(*) = ${ids.length} from cyclone_steps join ledger using (run_id, node) where state = 'completed' and attempt = 1`,
    );
    while (!worker.health().healthy) await fixture.pause();
    expect(worker.health().problems).toEqual([]);
    expect(fixture.log.join('\n')).toContain('read-only');
  });
});
