import type { Aftermath } from '#cyclone/worker/aftermath.js';
import type { Lane } from '#cyclone/worker/lanes/lane.js';
import { Tick } from '#cyclone/worker/tick.js';
import { resolveWorkerOptions } from '#cyclone/worker/worker-options.js';
import { ProblemLog } from '#cyclone/worker/worker-logger.js';
import { dropTemplate, Fixture, job } from './fixture.js';

/** More than one call sweeps, and less than two. */
const MANY = 250;

let fixture: Fixture;
let ticks: number;
const log: string[] = [];
beforeEach(async () => {
  ticks = 0;
  log.length = 0;
  fixture = await Fixture.open({
    role: 'worker',
    observer: (call, phase) => {
      if (call === 'cyclone_tick' && phase === 'after') ticks++;
    },
  });
});
afterEach(() => fixture.close());
afterAll(dropTemplate);

/** One tick of a worker that has been connected for long. */
async function tick(): Promise<void> {
  const note = (message: string): void => void log.push(message);
  const lane: Pick<Lane, 'connectedAt' | 'chore'> = {
    connectedAt: -Infinity,
    chore: (work) => fixture.engine.connections.use(work),
  };
  const aftermath: Pick<Aftermath, 'of'> = { of: () => undefined };
  await new Tick({
    engine: fixture.engine,
    options: resolveWorkerOptions({ maxReclaims: 3 }, ['default']),
    kinds: ['work'],
    lane: lane as Lane,
    aftermath: aftermath as Aftermath,
    problems: new ProblemLog({ log: note, warn: note, error: note }),
    waiting: () => undefined,
    troubles: () => [],
    due: () => undefined,
    later: () => undefined,
  }).run();
}

/** Steps of workers that are gone. */
async function expired(reclaims: number): Promise<void> {
  await fixture.submit(...Array.from({ length: MANY }, () => job('work')));
  await fixture.rows('alter table cyclone_steps disable trigger user');
  await fixture.rows(
    `update cyclone_steps set state = 'running', lease_owner = 'gone', lease_generation = 1, reclaims = $1,
       started_at = now() - interval '2 min', lease_expiry = now() - interval '1 min'`,
    [reclaims],
  );
  await fixture.rows('alter table cyclone_steps enable trigger user');
}

const breakEach = (table: string, state: string): Promise<unknown> =>
  fixture.rows(
    `create function break_it() returns trigger language plpgsql as
       $$ begin if new.state = '${state}' then raise 'this row is broken'; end if; return new; end $$;
     create trigger break_it before update on ${table} for each row execute function break_it()`,
  );

const states = (table: string): Promise<unknown[]> =>
  fixture.rows(`select state, count(*)::int as n from ${table} group by 1`);

describe('the housekeeping with more to do than one sweep takes', () => {
  it('goes on at once with expired leases (R19)', async () => {
    await expired(0);
    await tick();
    expect(ticks).toBe(2);
    expect(await states('cyclone_steps')).toEqual([{ state: 'available', n: MANY }]);
  });

  it('goes on at once with steps that have been reclaimed too often (R19)', async () => {
    await expired(3);
    await tick();
    expect(ticks).toBe(2);
    expect(await states('cyclone_steps')).toEqual([{ state: 'discarded', n: MANY }]);
  });

  it('goes on at once with runs past their deadline (R27)', async () => {
    await fixture.submit(...Array.from({ length: MANY }, () => ({ ...job('work'), deadlineMs: 60_000 })));
    await fixture.rows(`update cyclone_runs set deadline_at = now() - interval '1 s'`);
    await tick();
    expect(ticks).toBe(2);
    expect(await states('cyclone_runs')).toEqual([{ state: 'failed', n: MANY }]);
  });

  it('does not sweep again for steps that it cannot take back, and names one (R19)', async () => {
    await expired(0);
    await breakEach('cyclone_steps', 'available');
    await tick();
    expect(ticks).toBe(1);
    expect(log.join()).toMatch(/cannot take back step \d+:work \(SQLSTATE P0001\): this row is broken/);
  });

  it('names a run that it cannot end as a run (R27)', async () => {
    const id = await fixture.submitOne({ ...job('work'), deadlineMs: 60_000 });
    await fixture.rows(`update cyclone_runs set deadline_at = now() - interval '1 s'`);
    await breakEach('cyclone_runs', 'failed');
    await tick();
    expect(log.join()).toContain(`cannot end run ${id} at its deadline (SQLSTATE P0001): this row is broken`);
  });
});
