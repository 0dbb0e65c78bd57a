import { setTimeout as delay } from 'node:timers/promises';
import type { StepContext } from '#cyclone/graph/step-context.js';
import { deferred, dropTemplate, Fixture, graph, job, SOON } from './fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

describe('runs that somebody else has locked', () => {
  it('hold up no other run, and their steps complete once when they are free (C2)', async () => {
    fixture = await Fixture.open({ poolSize: 12 });
    const go = deferred();
    await fixture.worker({ slow: () => go.promise, quick: () => 1 }, { queues: { default: 20 } }).start();
    const locked = await fixture.submit(job('slow'), job('slow'));
    await fixture.until(`select count(*) = 2 from cyclone_steps where state = 'running'`);
    const runner = fixture.dataSource.createQueryRunner();
    await runner.query('begin');
    await runner.query('select 1 from cyclone_runs where id = any($1) for update', [locked]);
    go.resolve();
    await fixture.submit(...Array.from({ length: 500 }, () => job('quick')));
    await fixture.until(`select count(*) = 500 from cyclone_steps where state = 'completed'`);
    const [held] = await fixture.rows(`select count(*)::int as n from cyclone_steps where state = 'running'`);
    expect(held).toEqual({ n: 2 });
    await delay(1_500); // longer than a step alone waits for its run
    await runner.query('commit');
    await runner.release();
    await fixture.idle();
    expect(fixture.stepEvents('completed')).toHaveLength(502);
    expect(fixture.stepEvents('lease_lost')).toEqual([]);
  });

  it('settle their failures too, each once', async () => {
    fixture = await Fixture.open();
    const go = deferred();
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          await go.promise;
          if (ctx.attempt === 1) throw new Error('no');
        },
      })
      .start();
    const id = await fixture.submitOne(job('work', null, { policy: { backoff: SOON } }));
    await fixture.until(`select count(*) = 1 from cyclone_steps where state = 'running'`);
    const runner = fixture.dataSource.createQueryRunner();
    await runner.query('begin');
    await runner.query('select 1 from cyclone_runs where id = $1 for update', [id]);
    go.resolve();
    await delay(300);
    await runner.query('commit');
    await runner.release();
    await fixture.idle();
    expect(fixture.typesOf(id)).toEqual(['claimed', 'retried', 'claimed', 'completed', 'run_completed']);
  });
});

describe('a step that the database refuses to complete', () => {
  it('is discarded as permanent and harms no other one of its batch (S50)', async () => {
    fixture = await Fixture.open();
    await fixture.rows(`
      create function refuse() returns trigger language plpgsql as $$ begin
        if new.state = 'completed' and new.output = '"bad"' then raise exception 'this output is not wanted'; end if;
        return new;
      end $$`);
    await fixture.rows('create trigger refuse before update on cyclone_steps for each row execute function refuse()');
    await fixture.submit(...Array.from({ length: 50 }, (_, i) => job('work', i)));
    await fixture.worker({ work: (i: number) => (i % 10 === 3 ? 'bad' : 'good') }, { queues: { default: 50 } }).start();
    await fixture.idle();
    expect(
      await fixture.rows(
        `select state, error_kind, error, count(*)::int as n from cyclone_steps group by 1, 2, 3 order by 1`,
      ),
    ).toEqual([
      { state: 'completed', error_kind: null, error: null, n: 45 },
      {
        state: 'discarded',
        error_kind: 'permanent',
        error: 'The database refuses the completion of this step: this output is not wanted',
        n: 5,
      },
    ]);
  });
});

describe('a cancelled run', () => {
  const waits = (started: () => void, aborted: () => void) => ({
    work: (_: unknown, ctx: StepContext): Promise<unknown> => {
      started();
      return new Promise((_resolve, reject) => {
        ctx.signal.addEventListener('abort', () => {
          aborted();
          reject(ctx.signal.reason as Error);
        });
      });
    },
  });

  it('aborts its handlers at once where notifications arrive (R28, S72, F41)', async () => {
    fixture = await Fixture.open();
    const other = await fixture.another();
    const [started, aborted] = [deferred(), deferred()];
    await fixture.settledWorker(waits(started.resolve, aborted.resolve), { leaseTtl: '1h' });
    const id = await fixture.submitOne(job('work'));
    await started.promise;
    await other.engine.connections.use((session) => other.engine.store.cancel(session, id, 'test'));
    other.engine.notifier.wake({ cancelled: [id] });
    await aborted.promise;
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'cancelled' });
  });

  it('aborts them with the next heartbeat where none do (S47)', async () => {
    fixture = await Fixture.open();
    const other = await fixture.another();
    const [started, aborted] = [deferred(), deferred()];
    await fixture.worker(waits(started.resolve, aborted.resolve), { leaseTtl: '6s' }, { listen: false }).start();
    const id = await fixture.submitOne(job('work'));
    await started.promise;
    await other.engine.connections.use((session) => other.engine.store.cancel(session, id, 'test'));
    await aborted.promise;
    expect(fixture.typesOf(id)).toEqual(['claimed', 'lease_lost']);
  });
});

describe('a worker that was stopped inside its completion transaction', () => {
  it('cannot hold up its successor: its session is ended when the lease is taken away (C3)', async () => {
    fixture = await Fixture.open();
    const id = await fixture.submitOne(job('work'));
    await fixture.rows(
      `update cyclone_steps set state = 'running', lease_owner = 'zombie', lease_generation = 1, started_at = now(), lease_expiry = now() + interval '300 ms' where run_id = $1`,
      [id],
    );
    const zombie = await fixture.engine.connections.hold();
    await fixture.engine.completions.begin(zombie.session, { runId: id, node: 'work', generation: 1 }, false);
    await zombie.session.script('write', `insert into ledger values (${id}, 'work', 666)`);
    await fixture
      .worker(
        {
          work: async (_: unknown, ctx) => {
            const tx = await ctx.completionTx();
            await tx.query('insert into ledger values ($1, $2, 1) on conflict do nothing', [ctx.runId, ctx.node]);
          },
        },
        { leaseTtl: '6s' },
      )
      .start();
    await fixture.idle();
    expect(await fixture.rows('select amount from ledger')).toEqual([{ amount: 1 }]);
    await zombie.release(true);
  });
});

describe('a main thread that answers nothing for longer than stallLimit', () => {
  it('has its leases renewed no more (R18)', async () => {
    fixture = await Fixture.open();
    await fixture.rows('create table beats (at timestamptz default clock_timestamp())');
    await fixture.rows(
      'create function beat() returns trigger language plpgsql as $$ begin insert into beats default values; return new; end $$',
    );
    await fixture.rows(
      'create trigger beat before update of lease_expiry on cyclone_steps for each row execute function beat()',
    );
    const blocked = deferred();
    let executions = 0;
    await fixture
      .worker(
        {
          work: () => {
            if (executions++ > 0) return; // its lease may have been taken back before it could complete
            const end = performance.now() + 3_000;
            while (performance.now() < end);
            blocked.resolve();
          },
        },
        { leaseTtl: 600, stallLimit: 300 },
      )
      .start();
    await fixture.submit(job('work'));
    await blocked.promise;
    await fixture.idle();
    const [row] = await fixture.rows(
      `select max(gap) > interval '1.5 s' as silent from (select at - lag(at) over (order by at) as gap from beats) b`,
    );
    expect(row).toEqual({ silent: true });
  });
});

describe('one queue whose handlers hold transactions', () => {
  it('does not starve another queue (S57)', async () => {
    fixture = await Fixture.open({ poolSize: 8 });
    const go = deferred();
    await fixture
      .worker(
        {
          hold: async (_: unknown, ctx) => {
            await ctx.completionTx();
            await go.promise;
          },
          quick: () => 1,
        },
        { queues: { busy: 20, other: 2 } },
      )
      .start();
    await fixture.submit(...Array.from({ length: 200 }, () => job('hold', null, { queue: 'busy' })));
    fixture.engine.notifier.wake({ queues: ['busy'] });
    await fixture.until(`select count(*) = 20 from cyclone_steps where state = 'running'`);
    await fixture.submit(...Array.from({ length: 10 }, () => job('quick', null, { queue: 'other' })));
    fixture.engine.notifier.wake({ queues: ['other'] });
    await fixture.until(`select count(*) = 10 from cyclone_steps where state = 'completed' and queue = 'other'`);
    go.resolve();
    await fixture.idle();
    expect(fixture.stepEvents('completed')).toHaveLength(210);
  });
});

describe('order', () => {
  it('is by priority, then first in, first out (R10, S75)', async () => {
    fixture = await Fixture.open();
    const order: number[] = [];
    const run = (input: number, priority: number) => job('work', input, { priority });
    await fixture.submit(run(3, 5), run(1, -1), run(4, 5), run(2, 0));
    await fixture.worker({ work: (input: number) => void order.push(input) }, { queues: { default: 1 } }).start();
    await fixture.idle();
    expect(order).toEqual([1, 2, 3, 4]);
  });

  it('lets a paused run start nothing, and puts back what fails meanwhile (R26)', async () => {
    fixture = await Fixture.open();
    const go = deferred();
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          await go.promise;
          if (ctx.attempt === 1) throw new Error('no');
        },
      })
      .start();
    const node = (name: string) => ({
      ...(job('work').nodes[0] as ReturnType<typeof job>['nodes'][0]),
      node: name,
      policy: { backoff: SOON },
    });
    const id = await fixture.submitOne(graph([node('a')]));
    await fixture.until(`select state = 'running' from cyclone_steps where run_id = $1`, [id]);
    await fixture.engine.connections.use((session) => fixture.engine.store.pause(session, id));
    go.resolve();
    await fixture.until(`select state = 'paused' from cyclone_steps where run_id = $1`, [id]);
    await fixture.engine.connections.use((session) => fixture.engine.store.resume(session, id));
    await fixture.idle();
    expect(await fixture.step(id, 'a')).toMatchObject({ state: 'completed', attempt: 2 });
  });
});
