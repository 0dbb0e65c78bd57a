import { jest } from '@jest/globals';
import { ConnectionLine } from '#cyclone/worker/completion/connection-line.js';
import { ProblemLog } from '#cyclone/worker/worker-logger.js';
import { describeReason } from '#cyclone/model/explanation.js';
import { examine } from '#cyclone/store/doctor/doctor.js';
import { deferred, dropTemplate, Fixture, job } from './fixture.js';

let fixture: Fixture;
afterEach(async () => {
  jest.useRealTimers();
  await fixture.close();
});
afterAll(dropTemplate);

/** Timers and the clock stand still until a test moves them; sockets go on. */
const stopClock = () => jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });

describe('completion transactions and connections that handlers take themselves (R42, C14)', () => {
  it('go on when every handler holds a connection of its own before it asks for the transaction (F14)', async () => {
    fixture = await Fixture.open({ poolSize: 10 });
    const probe = await fixture.another({ poolSize: 2 });
    await fixture
      .worker(
        {
          work: (_: unknown, ctx) =>
            fixture.dataSource.transaction(async (own) => {
              await own.query('select 1');
              const tx = await ctx.completionTx();
              await tx.query('insert into ledger values ($1, $2, 1)', [ctx.runId, ctx.node]);
            }),
        },
        { queues: { default: 10 } },
      )
      .start();
    await probe.submit(...Array.from({ length: 40 }, () => job('work', null, { maxAttempts: 1 })));
    await probe.until(`select count(*) = 40 and bool_and(state = 'completed') from cyclone_runs`);
    await fixture.idle();
    expect(await probe.rows('select count(*)::int as n from ledger')).toEqual([{ n: 40 }]);
    expect(await probe.rows('select * from cyclone_attempts')).toEqual([]);
  });

  it('make the reserved connection anew when it was lost, in use or not', async () => {
    fixture = await Fixture.open({ poolSize: 4 });
    const probe = await fixture.another({ poolSize: 2 });
    const cut = `select pg_terminate_backend(pid) from pg_stat_activity
                  where datname = current_database() and pid <> pg_backend_pid() and application_name !~ 'lane|leases'`;
    let cuts = 0;
    await fixture
      .worker({
        work: async (input: string, ctx) => {
          const tx = await ctx.completionTx();
          await tx.query('insert into ledger values ($1, $2, 1)', [ctx.runId, ctx.node]);
          if (input === 'cut' && cuts++ === 0) await probe.rows(cut);
        },
      })
      .start();
    for (const input of ['work', 'cut', 'work']) {
      await probe.submitOne(job('work', input, { maxAttempts: 1 }));
      await probe.idle();
      await probe.rows(cut);
    }
    expect(await probe.rows('select count(*)::int as n from ledger')).toEqual([{ n: 3 }]);
  });

  it('say after 5 s which step waits and what to set: in the log, to explain and to the doctor', async () => {
    fixture = await Fixture.open({ poolSize: 4 });
    const probe = await fixture.another({ poolSize: 2 });
    const first = deferred();
    await fixture
      .worker({
        work: async (_: unknown, ctx) => {
          await ctx.completionTx();
          if (ctx.runId === run) await first.promise;
        },
      })
      .start();
    const run = await probe.submitOne(job('work'));
    await probe.until(
      `select count(*) = 1 from pg_stat_activity where datname = current_database() and application_name like 'cyclone:%'`,
    );
    const waiting = await probe.submitOne(job('work'));
    await probe.until(`select count(*) = 1 from cyclone_workers where waiting ? $1`, [`${waiting}:work`]);

    expect(fixture.log.join('\n')).toMatch(/of kind "work" has waited 5 s for a connection.*poolSize.*worker\.queues/);
    await probe.engine.connections.use(async (session) => {
      const { inspection, operations } = probe.engine;
      const explained = await inspection.explain(session, waiting, 'work');
      expect(explained?.reasons?.map(({ code }) => code)).toEqual(['waits_for_connection', 'running']);
      expect(describeReason(explained!.reasons![0]!)).toMatch(/waits for a connection of the pool.*poolSize/);
      expect(await examine(session, 'public', inspection, operations)).toContainEqual(
        expect.objectContaining({
          check: 'connections',
          level: 'warning',
          message: expect.stringContaining('1 step(s)'),
        }),
      );
    });
    first.resolve();
    await probe.idle();
    await probe.until('select bool_and(waiting is null) from cyclone_workers');
  });

  it('leave the line with an error one after the other when nothing has moved for 30 s', async () => {
    fixture = await Fixture.open({ poolSize: 4 });
    stopClock();
    const log: string[] = [];
    const note = (message: string): void => void log.push(message);
    const { connections } = fixture.engine;
    const problems = new ProblemLog({ log: note, warn: note, error: note });
    const line = new ConnectionLine({ connections, problems, capacity: 1, lanes: 2 });
    const enter = (key: string) => line.enter({ key, kind: 'work' });
    try {
      const first = enter('1:a');
      await first.granted;
      const [second, third, fourth] = [enter('2:a'), enter('3:a'), enter('4:a')];
      const over: string[] = [];
      for (const place of [second, third, fourth]) {
        place.granted.then(
          () => over.push(`${place.customer.key} served`),
          (error: Error) => over.push(`${place.customer.key} ${error.name}`),
        );
      }
      await jest.advanceTimersByTimeAsync(29_000);
      expect(over).toEqual([]);
      expect(log).toHaveLength(1);
      expect(Object.keys(line.waiting() ?? {})).toEqual(['2:a', '3:a', '4:a']);
      await jest.advanceTimersByTimeAsync(1_000);
      expect(over).toEqual(['2:a NoConnectionError']);
      await first.release(false); // as a handler does that held it while it waited for what the second held
      await jest.advanceTimersByTimeAsync(0);
      expect(over).toEqual(['2:a NoConnectionError', '3:a served']);
      await jest.advanceTimersByTimeAsync(29_000);
      expect(over).toHaveLength(2);
      await third.release(false);
      await jest.advanceTimersByTimeAsync(0);
      expect(over.at(-1)).toBe('4:a served');
      await fourth.release(false);
      await expect(second.granted).rejects.toThrow(/poolSize.*worker\.queues/);
    } finally {
      await line.close();
    }
  });
});

describe('calls of the engine on a pool that is used up (R42, F14)', () => {
  it('are reported after 5 s and given up after 30 s, and the connection that comes later goes back', async () => {
    const log: string[] = [];
    fixture = await Fixture.open({ poolSize: 1, onWait: (message) => log.push(message) });
    const { connections } = fixture.engine;
    const held = await connections.hold();
    stopClock();
    const waiting = connections.hold('submit of order');
    waiting.catch(() => undefined);
    await jest.advanceTimersByTimeAsync(5_000);
    expect(log).toEqual([expect.stringMatching(/submit of order has waited 5 s.*all 1 .*1 callers wait.*poolSize/)]);
    await jest.advanceTimersByTimeAsync(25_000);
    await expect(waiting).rejects.toMatchObject({ code: 'CYCLONE_NO_CONNECTION', reason: 'pool' });
    jest.useRealTimers();
    await held.release();
    await connections.use((session) => session.script('test', 'select 1'));
  });
});
