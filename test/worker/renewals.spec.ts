import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from '#cyclone/worker/worker.js';
import { deferred, dropTemplate, Fixture, job } from './fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

/** Renewals fail, as for a role that may not call the function; everything else goes on. */
const fail = (): Promise<unknown> => fixture.rows('alter function cyclone_heartbeat rename to cyclone_heartbeat_away');
const mend = (): Promise<unknown> => fixture.rows('alter function cyclone_heartbeat_away rename to cyclone_heartbeat');

/** Until the worker has ticked a few times more: it would have claimed by then. */
async function ticks(): Promise<void> {
  const [seen] = await fixture.rows('select last_seen_at::text as at from cyclone_workers');
  await fixture.until(`select last_seen_at > $1::timestamptz + interval '300 ms' from cyclone_workers`, [seen?.['at']]);
}

const by = async (worker: Worker, who: string): Promise<void> => {
  while (worker.health().renewals.by !== who) await delay(5);
};

describe('a worker whose leases cannot be renewed (R41, F4)', () => {
  it('claims nothing from its start on, says so, and begins when they can', async () => {
    fixture = await Fixture.open();
    await fail();
    const worker = fixture.worker({ work: () => 'done' }, { pollInterval: 50 });
    await worker.start();
    const id = await fixture.submitOne(job('work'));
    await fixture.until('select exists (select from cyclone_workers)');
    while (!fixture.log.join().includes('Leases cannot be renewed, and nothing is claimed')) await delay(5);
    await ticks();
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'available', lease_generation: 0 });
    const health = worker.health();
    expect(health).toMatchObject({ healthy: false, renewals: { by: 'none' } });
    expect(health.renewals.reason).toContain('cyclone_heartbeat');
    await mend();
    await fixture.idle();
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'completed', lease_generation: 1 });
    expect(worker.health().healthy).toBe(true);
  });

  it('claims nothing more while they cannot, and goes on afterwards', async () => {
    fixture = await Fixture.open();
    const done = deferred();
    const worker = fixture.worker({ hold: () => done.promise, work: () => 'done' }, { pollInterval: 50 });
    await worker.start();
    const held = await fixture.submitOne(job('hold'));
    await fixture.until(`select state = 'running' from cyclone_steps where run_id = $1`, [held]);
    await fail();
    const { runtime } = worker as unknown as { runtime: { keeper: { beatNow(): void } } };
    runtime.keeper.beatNow();
    await by(worker, 'none');
    const id = await fixture.submitOne(job('work'));
    await ticks();
    expect(await fixture.step(id, 'work')).toMatchObject({ state: 'available', lease_generation: 0 });
    await mend();
    done.resolve();
    await fixture.idle();
    for (const [run, node] of [
      [held, 'hold'],
      [id, 'work'],
    ] as const)
      expect(await fixture.step(run, node)).toMatchObject({ state: 'completed', lease_generation: 1 });
    expect(worker.health().renewals).toEqual({ by: 'thread', reason: null });
  });
});
