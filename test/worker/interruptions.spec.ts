import pg from 'pg';
import type { EntityManager } from 'typeorm';
import type { StepContext } from '#cyclone/graph/step-context.js';
import { PermanentError } from '#cyclone/model/errors/index.js';
import type { CallPhase } from '#cyclone/store/session.js';
import { deferred, dropTemplate, Fixture, job } from './fixture.js';

// What is the database's, the network's or the engine's own is never charged to a handler (R39). Every step here has one attempt, so that a
// charge would discard it and fail its run.

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

const write = (tx: EntityManager, ctx: StepContext): Promise<unknown> =>
  tx.query('insert into ledger values ($1, $2, 1)', [ctx.runId, ctx.node]);

/** Ends the backend of a completion transaction from outside and waits until it is gone. */
async function terminate(pid: number): Promise<void> {
  await fixture.rows('select pg_terminate_backend($1, 10000)', [pid]);
}

const pidOf = async (tx: EntityManager): Promise<number> =>
  ((await tx.query('select pg_backend_pid() as pid')) as [{ pid: number }])[0].pid;

const once = (): (() => boolean) => {
  let done = false;
  return () => !done && (done = true);
};

const only = () => job('work', null, { maxAttempts: 1 });

/** What one step is after its run has ended, and what was written. */
async function outcome(id: string, from = fixture): Promise<Record<string, unknown>> {
  const { state, attempt, reclaims } = await from.step(id, 'work');
  const [{ written }] = (await from.rows(`select count(*)::int as written from ledger`)) as [{ written: number }];
  const attempts = await from.rows('select outcome, error, error_kind from cyclone_attempts order by generation');
  return { state, attempt, reclaims, written, attempts };
}

const INTERRUPTED_ONCE = { state: 'completed', attempt: 1, reclaims: 1, written: 1 };
const BY_ADMINISTRATOR = 'terminating connection due to administrator command';

describe('a session that the server ends', () => {
  it.each([
    [
      'while a statement is under way',
      (tx: EntityManager, pid: number) => [tx.query('select pg_sleep(600)'), terminate(pid)],
    ],
    ['while the handler does something else', (_: EntityManager, pid: number) => [terminate(pid)]],
  ])('%s is not charged, and the error has its own words (F1, F51, R39)', async (_, meanwhile) => {
    fixture = await Fixture.open();
    const first = once();
    await fixture
      .worker({
        work: async (_input: unknown, ctx) => {
          const tx = await ctx.completionTx();
          await write(tx, ctx);
          if (first()) await Promise.all(meanwhile(tx, await pidOf(tx)));
        },
      })
      .start();
    const id = await fixture.submitOne(only());
    await fixture.idle();
    const error = `The completion transaction lost its connection: ${BY_ADMINISTRATOR}`;
    expect(await outcome(id)).toEqual({
      ...INTERRUPTED_ONCE,
      attempts: [{ outcome: 'interrupted', error, error_kind: null }],
    });
    expect(fixture.typesOf(id, 'work')).toEqual(['claimed', 'interrupted', 'claimed', 'completed']);
    expect(fixture.stepEvents('interrupted')).toMatchObject([{ attempt: 1, error }]);
    expect(fixture.log.join('\n')).toContain(error);
  });

  it.each([
    ['wrapped', (cause: unknown) => Promise.reject(new Error('The order could not be stored', { cause }))],
    ['replaced', () => Promise.reject(new Error('The order could not be stored'))],
    ['made permanent', () => Promise.reject(new PermanentError('The order could not be stored'))],
    ['swallowed', () => Promise.resolve('stored')],
  ])('is not charged where the handler has %s its error (F1, R39)', async (_, make) => {
    fixture = await Fixture.open();
    const first = once();
    await fixture
      .worker({
        work: async (_input: unknown, ctx) => {
          const tx = await ctx.completionTx();
          if (first()) await terminate(await pidOf(tx));
          return write(tx, ctx).then(() => 'stored', make);
        },
      })
      .start();
    const id = await fixture.submitOne(only());
    await fixture.idle();
    expect(await outcome(id)).toMatchObject({ ...INTERRUPTED_ONCE, attempts: [{ outcome: 'interrupted' }] });
  });

  it('is not charged inside a nested transaction (F1, R39)', async () => {
    fixture = await Fixture.open();
    const first = once();
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          const tx = await ctx.completionTx();
          await tx.transaction(async (nested) => {
            if (first()) await terminate(await pidOf(nested));
            await write(nested, ctx);
          });
        },
      })
      .start();
    const id = await fixture.submitOne(only());
    await fixture.idle();
    expect(await outcome(id)).toMatchObject({ ...INTERRUPTED_ONCE, attempts: [{ outcome: 'interrupted' }] });
  });

  it.each([
    ['begin', 'before', 'could not begin'],
    ['begin', 'after', 'lost its connection'],
    ['complete', 'before', 'was not committed'],
  ] as const)('%s %s is not charged (F1, R39)', async (call, phase, words) => {
    const first = once();
    fixture = await Fixture.open({ observer: endAt(call, phase, first) });
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          await write(await ctx.completionTx(), ctx);
        },
      })
      .start();
    const id = await fixture.submitOne(only());
    await fixture.idle();
    expect(await outcome(id)).toMatchObject({
      ...INTERRUPTED_ONCE,
      attempts: [{ outcome: 'interrupted', error: expect.stringContaining(words) }],
    });
  });

  it('completes the step once when it had committed before (C4)', async () => {
    const first = once();
    fixture = await Fixture.open({ observer: endAt('complete', 'after', first) });
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          await write(await ctx.completionTx(), ctx);
        },
      })
      .start();
    const id = await fixture.submitOne(only());
    await fixture.idle();
    // The pool of the worker may not know yet that its connection is gone.
    expect(await outcome(id, await fixture.another())).toEqual({
      state: 'completed',
      attempt: 1,
      reclaims: 0,
      written: 1,
      attempts: [],
    });
  });

  it('while the step completes, and its commit with it, is not charged (F1, R39)', async () => {
    fixture = await Fixture.open();
    const [reached, go] = [deferred(), deferred()];
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          await write(await ctx.completionTx(), ctx);
          reached.resolve();
          await go.promise;
        },
      })
      .start();
    const id = await fixture.submitOne(only());
    await reached.promise;
    const blocker = fixture.dataSource.createQueryRunner();
    await blocker.startTransaction();
    await blocker.query('select 1 from cyclone_runs where id = $1 for update', [id]);
    go.resolve();
    const completing = `from pg_stat_activity where application_name like 'cyclone:%' and wait_event_type = 'Lock'`;
    await fixture.until(`select exists (select 1 ${completing})`);
    await fixture.rows(`select pg_terminate_backend(pid, 10000) ${completing}`);
    await blocker.rollbackTransaction();
    await blocker.release();
    await fixture.idle();
    const error = `The completion transaction was not committed: ${BY_ADMINISTRATOR}`;
    expect(await outcome(id)).toMatchObject({ ...INTERRUPTED_ONCE, attempts: [{ outcome: 'interrupted', error }] });
  });

  it('because it idled for too long says so (F51)', async () => {
    fixture = await Fixture.open();
    const first = once();
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          const tx = await ctx.completionTx();
          if (first()) {
            const pid = await pidOf(tx);
            await tx.query('set local idle_in_transaction_session_timeout = 1');
            await fixture.until('select not exists (select 1 from pg_stat_activity where pid = $1)', [pid]);
          }
          await write(tx, ctx);
        },
      })
      .start();
    const id = await fixture.submitOne(only());
    await fixture.idle();
    const error =
      'The completion transaction lost its connection: terminating connection due to idle-in-transaction timeout';
    expect(await outcome(id)).toMatchObject({ ...INTERRUPTED_ONCE, attempts: [{ outcome: 'interrupted', error }] });
  });

  it('each time ends the step after maxReclaims (R19, R39)', async () => {
    fixture = await Fixture.open();
    let calls = 0;
    await fixture
      .worker(
        {
          work: async (_: unknown, ctx) => {
            calls++;
            await terminate(await pidOf(await ctx.completionTx()));
          },
        },
        { maxReclaims: 1 },
      )
      .start();
    const id = await fixture.submitOne(only());
    await fixture.idle();
    expect(calls).toBe(2);
    expect(await fixture.step(id, 'work')).toMatchObject({
      state: 'discarded',
      attempt: 1,
      error_kind: 'reclaim_limit',
      error: expect.stringContaining(BY_ADMINISTRATOR),
    });
  });
});

describe('a healthy session', () => {
  const raise = (code: string) => `do $$ begin raise exception 'raised' using errcode = '${code}'; end $$`;

  /** Runs a step for each statement, which its first execution makes in vain; gives what became of them in the same order. */
  async function failOnce(
    statements: Readonly<Record<string, string>>,
    { swallow = false } = {},
  ): Promise<Record<string, unknown>> {
    fixture = await Fixture.open();
    const failed = new Set<string>();
    await fixture
      .worker({
        work: async (statement: string, ctx) => {
          const tx = await ctx.completionTx();
          if (!failed.has(ctx.runId)) {
            failed.add(ctx.runId);
            const made = tx.query(statement);
            await (swallow ? made.catch(() => undefined) : made);
          }
          await write(tx, ctx);
        },
      })
      .start();
    const ids = await fixture.submit(...Object.values(statements).map((sql) => job('work', sql, { maxAttempts: 1 })));
    await fixture.idle();
    const outcomes: Record<string, unknown> = {};
    for (const [index, name] of Object.keys(statements).entries()) {
      const [row] = await fixture.rows<{ outcome: string; error: string }>(
        `select s.state, s.attempt, s.reclaims, a.outcome, a.error from cyclone_steps s join cyclone_attempts a using (run_id, node)
          where s.run_id = $1`,
        [ids[index]],
      );
      outcomes[name] = row;
    }
    return outcomes;
  }

  const each = (statements: object, expected: object): Record<string, unknown> =>
    Object.fromEntries(Object.keys(statements).map((name) => [name, expected]));

  const NOT_THE_HANDLERS = {
    'a full disk': raise('53100'),
    'memory that is short': raise('53200'),
    'a read-only server': raise('25006'),
    'an I/O error': raise('58030'),
    'a prepared statement that the session does not know': 'execute nothing',
  };

  it('on which a statement meets what is no fault of the handler charges nothing (F1, R39)', async () => {
    const error = expect.stringContaining('The completion transaction was stopped by the database: ') as string;
    expect(await failOnce(NOT_THE_HANDLERS)).toMatchObject(
      each(NOT_THE_HANDLERS, { state: 'completed', attempt: 1, reclaims: 1, outcome: 'interrupted', error }),
    );
  });

  it('charges nothing then either when the handler swallows the error (F1, R39)', async () => {
    expect(await failOnce(NOT_THE_HANDLERS, { swallow: true })).toMatchObject(
      each(NOT_THE_HANDLERS, { state: 'completed', attempt: 1, reclaims: 1, outcome: 'interrupted' }),
    );
  });

  it('on which a statement of the handler fails by its own fault is charged (R39)', async () => {
    const statements = {
      'a unique violation': `insert into ledger values (0, 'x', 1), (0, 'x', 1)`,
      'a division by zero': 'select 1 / 0',
      'a syntax error': 'selct',
      'an unknown table': 'select * from nowhere',
      'its own statement_timeout': 'set local statement_timeout = 1; select pg_sleep(60)',
      'its own serialization failure': raise('40001'),
      'its own deadlock': raise('40P01'),
      'its own lock_timeout': raise('55P03'),
      'an error inside an extension': raise('XX000'),
    };
    expect(await failOnce(statements)).toMatchObject(
      each(statements, { state: 'discarded', attempt: 1, reclaims: 0, outcome: 'discarded' }),
    );
    expect(await fixture.rows('select * from ledger')).toEqual([]);
  });

  it('on which the completion itself fails charges nothing (F1, R39)', async () => {
    const codes = ['40001', '40P01', '55P03', '57014', '53100', '25006', '42883', 'XX000'];
    fixture = await Fixture.open();
    await fixture.rows(`
      create function fail_once() returns trigger language plpgsql as $$
      begin
        raise exception 'raised' using errcode = new.input #>> '{}';
      end $$`);
    await fixture.rows(`
      create trigger fail_once before update on cyclone_steps for each row
        when (new.state = 'completed' and new.reclaims = 0) execute function fail_once()`);
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          await write(await ctx.completionTx(), ctx);
        },
      })
      .start();
    await fixture.submit(...codes.map((code) => job('work', code, { maxAttempts: 1 })));
    await fixture.idle();
    const error = 'The completion transaction was not committed: raised';
    expect(
      await fixture.rows(
        `select s.input, s.state, s.attempt, a.outcome, a.error from cyclone_steps s join cyclone_attempts a using (run_id, node)
          order by s.run_id`,
      ),
    ).toEqual(codes.map((input) => ({ input, state: 'completed', attempt: 1, outcome: 'interrupted', error })));
    expect(await fixture.rows('select * from ledger')).toHaveLength(codes.length);
  });
});

describe('a server that accepts no connection', () => {
  it('interrupts the step, and charges nothing (F1, R39)', async () => {
    fixture = await Fixture.open();
    const other = await fixture.another();
    const maintenance = new URL(fixture.database.url);
    maintenance.pathname = '/postgres';
    const elsewhere = new pg.Client({ connectionString: maintenance.href });
    await elsewhere.connect();
    const accept = (yes: boolean) =>
      elsewhere.query(`alter database ${fixture.database.name} with allow_connections ${yes}`);
    const first = once();
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          if (first()) {
            await accept(false);
            await other.rows(
              `select pg_terminate_backend(pid, 10000) from pg_stat_activity
                where datname = current_database() and pid <> pg_backend_pid() and application_name not like 'cyclone-lane:%'`,
            );
          }
          await write(await ctx.completionTx(), ctx);
        },
      })
      .start();
    const id = await other.submitOne(only());
    await other.until('select reclaims > 0 from cyclone_steps');
    await accept(true);
    await elsewhere.end();
    await other.idle();
    const { attempts, state, attempt, written } = await outcome(id, other);
    expect({ state, attempt, written }).toEqual({ state: 'completed', attempt: 1, written: 1 });
    expect(attempts).toContainEqual({
      outcome: 'interrupted',
      error: expect.stringMatching(
        /^The completion transaction could not begin: database ".*" is not currently accepting/,
      ),
      error_kind: null,
    });
  });
});

/** Ends the session's own backend at a call. */
function endAt(call: string, phase: CallPhase, first: () => boolean) {
  return async (name: string, at: CallPhase, client: { query(query: { text: string }): Promise<unknown> }) => {
    if (name !== call || at !== phase || !first()) return;
    await client.query({ text: 'select pg_terminate_backend(pg_backend_pid())' }).catch(() => undefined);
  };
}
