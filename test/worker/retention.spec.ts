import { setImmediate } from 'node:timers/promises';
import { resolveRetention, type RetentionOptions } from '#cyclone/worker/retention-options.js';
import type { WorkerSettings } from '#cyclone/worker/worker-options.js';
import { dropTemplate, Fixture, graph, job, type FixtureOptions } from './fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

const DAY = 86_400_000;

const sweeping = (options: RetentionOptions = {}): WorkerSettings => ({ retention: resolveRetention(options) });

/** Runs with these retentions of their steps (null: none), in this state, that ended so many days ago. */
async function ended(days: number, state: 'completed' | 'failed', ...retentions: (number | null)[]): Promise<string> {
  const [first] = job('old').nodes;
  const nodes = retentions.map((kept, i) => ({
    ...first!,
    node: `n${i}`,
    ...(kept === null ? {} : { policy: { retentionMs: kept * DAY } }),
  }));
  const id = await fixture.submitOne(graph(nodes));
  await fixture.rows('alter table cyclone_steps disable trigger user');
  await fixture.rows('alter table cyclone_runs disable trigger user');
  await fixture.rows(`update cyclone_steps set state = $2, finished_at = now() where run_id = $1`, [
    id,
    state === 'failed' ? 'discarded' : state,
  ]);
  await fixture.rows(
    `update cyclone_runs set state = $2, open_steps = 0, finished_at = now() - $3 * interval '1 day',
       failed_at = case when $2 = 'failed' then now() - $3 * interval '1 day' end where id = $1`,
    [id, state, days],
  );
  await fixture.rows('alter table cyclone_steps enable trigger user');
  await fixture.rows('alter table cyclone_runs enable trigger user');
  return id;
}

const left = async (): Promise<string[]> =>
  (await fixture.rows<{ id: string }>('select id from cyclone_runs order by id')).map(({ id }) => id);
/** A round goes from the first run to the last. */
const roundIsOver = (): Promise<void> =>
  fixture.until(`select exists (select 1 from cyclone_marks where name = 'retention')
                    and not exists (select 1 from cyclone_runs where tags is not null)`);
/** A run that is deleted as the last of all, so that its absence shows the end of a round. */
async function last(): Promise<void> {
  const id = await ended(1_000, 'completed', 1);
  await fixture.rows(`update cyclone_runs set tags = '{"last": "1"}' where id = $1`, [id]);
}

describe('the retention sweep (R35)', () => {
  it('deletes runs by the longest retention of their steps alone, when nothing else is said', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    const gone = [await ended(4, 'completed', 1, 3), await ended(4, 'failed', 3)];
    const young = await ended(4, 'completed', 1, 5);
    const forEver = await ended(1_000, 'completed', 1, null);
    await last();
    await fixture.worker({}, {}, sweeping({})).start();
    await roundIsOver();
    expect(await left()).toEqual([young, forEver]);
    expect(await fixture.rows('select 1 from cyclone_steps where run_id = any($1)', [gone])).toEqual([]);
    expect(fixture.log).toEqual([]);
  });

  it('lets defaultAge stand for the retention of a step that has none', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    await ended(8, 'completed', null);
    const young = await ended(6, 'completed', null, 1);
    const longer = await ended(8, 'completed', null, 9);
    await last();
    await fixture.worker({}, {}, sweeping({ defaultAge: '7d' })).start();
    await roundIsOver();
    expect(await left()).toEqual([young, longer]);
  });

  it('never deletes a paused run, nor a child whose parent may still need it', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    const paused = await fixture.submitOne(job('nobody', null, { policy: { retentionMs: 0 } }));
    await fixture.engine.connections.use((session) => fixture.engine.store.pause(session, paused));
    const parents = [paused, await ended(1, 'failed', 5), await ended(1, 'completed', 5)];
    const children: string[] = [];
    for (const parent of parents) {
      const child = await ended(100, 'completed', 1);
      await fixture.rows(`update cyclone_runs set parent_run_id = $1, parent_node = 'n0' where id = $2`, [
        parent,
        child,
      ]);
      children.push(child);
    }
    await last();
    await fixture.worker({}, {}, sweeping()).start();
    await roundIsOver();
    expect(await left()).toEqual([...parents, ...children.slice(0, 2)]);
  });

  it('is made by one process of many, in batches, and leaves nothing behind', async () => {
    const calls: string[] = [];
    const observer: FixtureOptions['observer'] = (call, phase) => {
      if (phase === 'after' && (call === 'cyclone_purge' || call === 'cyclone_begin_round')) calls.push(call);
    };
    fixture = await Fixture.open({ role: 'worker', observer, poolSize: 4 });
    for (let i = 0; i < 25; i++) await ended(2, 'completed', 1);
    const others = [];
    for (let i = 0; i < 5; i++) others.push(await fixture.another({ observer, poolSize: 4 }));
    const settings = sweeping({ batchSize: 10, interval: '1h' });
    await Promise.all([fixture, ...others].map((process) => process.worker({}, {}, settings).start()));
    await fixture.until('select not exists (select 1 from cyclone_runs)');
    while (calls.length < 6 + 3) await setImmediate();
    expect(calls.filter((call) => call === 'cyclone_begin_round')).toHaveLength(6);
    expect(calls.filter((call) => call === 'cyclone_purge')).toHaveLength(3);
    expect([fixture, ...others].flatMap(({ log }) => log)).toEqual([]);
  });

  it('comes round again after the interval', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    await fixture.worker({}, {}, sweeping({ interval: 100 })).start();
    for (let round = 0; round < 2; round++) {
      await ended(2, 'completed', 1);
      await fixture.until('select not exists (select 1 from cyclone_runs)');
    }
    expect(fixture.log).toEqual([]);
  });

  it('reports a failure once a round and tries again in the next', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    await ended(2, 'completed', 1);
    await fixture.rows('alter function cyclone_delete_runs rename to mislaid');
    await fixture.rows(`create function cyclone_delete_runs(p_runs bigint[]) returns bigint language plpgsql as $$ begin
      perform pg_terminate_backend(pg_backend_pid()); return 0; end $$`);
    await fixture.worker({}, {}, sweeping({ interval: 100 })).start();
    while (!fixture.log.some((line) => line.includes('by their retention; the next round tries again'))) {
      await setImmediate();
    }
    await fixture.rows('drop function cyclone_delete_runs');
    await fixture.rows('alter function mislaid rename to cyclone_delete_runs');
    await fixture.until('select not exists (select 1 from cyclone_runs)');
    expect(await left()).toEqual([]);
  });

  it('names runs that a foreign key of the application holds once, not in every round', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    const held = await ended(2, 'completed', 1);
    await fixture.rows('create table invoice (run_id bigint references cyclone_runs)');
    await fixture.rows('insert into invoice values ($1)', [held]);
    await fixture.worker({}, {}, sweeping({ interval: 100 })).start();
    // The log lets one line a second through.
    for (const end = performance.now() + 2_500; performance.now() < end;) {
      await last();
      await fixture.rows(`update cyclone_marks set at = '-infinity' where name = 'retention'`);
      await roundIsOver();
    }
    expect(await left()).toEqual([held]);
    expect(fixture.log).toEqual([
      `1 run(s) cannot be deleted by their retention, because a foreign key of the application refers to them: ${held}`,
    ]);
  });

  it('holds up neither claims nor completions, and an orderly stop cuts a batch that does not end (R20)', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    const held = await ended(2, 'completed', 1);
    const lock = await fixture.engine.connections.hold();
    await lock.session.script('lock', `begin; select from cyclone_steps where run_id = ${held} for no key update`);
    const worker = fixture.worker({ work: () => 'done' }, {}, sweeping());
    await worker.start();
    const waits = `select exists (select 1 from pg_stat_activity where datname = current_database()
                                   and query like '%cyclone_purge%' and wait_event_type = 'Lock')`;
    await fixture.until(waits);
    const ids = await fixture.submit(...Array.from({ length: 50 }, () => job('work')));
    await fixture.until(`select count(*) = 50 from cyclone_runs where id = any($1) and state = 'completed'`, [ids]);
    await fixture.until(waits);
    await worker.stop();
    expect(fixture.log).toEqual([]);
    await lock.session.script('unlock', 'commit');
    await lock.release();
  });

  it('waits at a stop for the batch under way, and the next round begins with the first run all the same', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    const young = await ended(0.5, 'completed', 1);
    const held = await ended(2, 'completed', 1);
    await ended(2, 'completed', 1);
    const lock = await fixture.engine.connections.hold();
    await lock.session.script('lock', `begin; select from cyclone_steps where run_id = ${held} for no key update`);
    const worker = fixture.worker({}, {}, sweeping({ batchSize: 1 }));
    await worker.start();
    await fixture.until(`select exists (select 1 from pg_stat_activity where datname = current_database()
                                         and query like '%cyclone_purge%' and wait_event_type = 'Lock')`);
    const stopped = worker.stop();
    await lock.session.script('unlock', 'commit');
    await lock.release();
    await stopped;
    expect(await left()).toHaveLength(2); // the batch was finished, no other was begun

    await fixture.rows(`update cyclone_runs set finished_at = now() - interval '2 days' where id = $1`, [young]);
    await fixture.rows(`update cyclone_marks set at = '-infinity' where name = 'retention'`);
    await last();
    await fixture.worker({}, {}, sweeping()).start();
    await roundIsOver();
    expect(await left()).toEqual([]);
    expect(fixture.log).toEqual([]);
  });
});

describe('workers that died', () => {
  it('are forgotten by the next one that starts, a day after they were last seen, unless they hold a lease', async () => {
    fixture = await Fixture.open({ role: 'worker' });
    await fixture.rows(
      `insert into cyclone_workers (id, host, pid, version, queues, kinds, started_at, last_seen_at)
       select id, 'host', 1, '1', '{}', '{}', now() - days * interval '1 day', now() - days * interval '1 day'
         from (values ('long dead', 2), ('holds a lease', 2), ('died just now', 0.5)) v(id, days)`,
    );
    await fixture.submitOne(job('nobody'));
    await fixture.rows(
      `update cyclone_steps set state = 'running', lease_owner = 'holds a lease', lease_generation = 1, started_at = now(), lease_expiry = now() + interval '1h'`,
    );
    await fixture.worker({}, { id: 'new' }).start();
    await fixture.until(`select not exists (select 1 from cyclone_workers where id = 'long dead')`);
    expect(await fixture.rows('select id from cyclone_workers order by id')).toEqual([
      { id: 'died just now' },
      { id: 'holds a lease' },
      { id: 'new' },
    ]);
  });
});
