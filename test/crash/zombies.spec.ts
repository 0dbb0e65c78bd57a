import type { CallPhase } from '#cyclone/store/session.js';
import { crashRun } from '../support/crash-runs.js';
import { createCrashTemplate, CrashSlot } from '../support/crash-slot.js';
import type { WorkerProcess } from '../support/crash-worker.js';
import type { TestDatabase } from '../support/postgres.js';
import { LONG_PROGRAMME } from './programme.js';

const TTL_MS = 2_000;
const POLL_MS = 100;

let template: TestDatabase;
let slot: CrashSlot;
let zombie: WorkerProcess;
let second: WorkerProcess;

beforeAll(async () => {
  template = await createCrashTemplate();
  slot = await CrashSlot.open(template);
});
beforeEach(async () => {
  [zombie, second] = await Promise.all([slot.victim(), slot.survivor()]);
});
afterEach(() => slot.reset());
afterAll(async () => {
  await slot.close();
  await template.drop();
});

const options = { leaseTtl: TTL_MS, pollInterval: POLL_MS };

/** The zombie executes the first node of a run and stands still in its handler. */
async function standInHandler(kind: string): Promise<string> {
  await zombie.start(options, true);
  const [run = ''] = await second.submit([crashRun({ entry: { kind }, next: { kind: 'ledger', after: ['entry'] } })]);
  await zombie.next('holding', { runId: run });
  return run;
}

/** The zombie stands before a call to the database, or in the middle of it. */
async function standAt(kind: string, call: string, phase: CallPhase): Promise<string> {
  const run = await standInHandler(kind);
  await zombie.arm(call, phase);
  await zombie.releaseAll();
  await zombie.next('at', { call });
  return run;
}

/** What the database's clock says. */
async function clock(): Promise<string> {
  const [row] = await slot.gate.rows<{ now: string }>('select clock_timestamp()::text as now');
  return row?.now ?? '';
}

async function step(run: string): Promise<Record<string, unknown>> {
  const [row] = await slot.gate.rows<Record<string, unknown>>(
    `select state, attempt, reclaims, lease_generation from cyclone_steps where run_id = $1 and node = 'entry'`,
    [run],
  );
  return row ?? {};
}

/** The zombie sleeps for two TTLs, in which the second worker takes its step over and ends the run. Then it wakes up. */
async function sleepForTwoTtls(): Promise<void> {
  zombie.suspend();
  const since = await clock();
  await second.start(options);
  await slot.runsEnd();
  await untilTwoTtlsAfter(since);
  zombie.resume();
}

function untilTwoTtlsAfter(time: string): Promise<void> {
  const sql = `select clock_timestamp() > $1::timestamptz + $2 * interval '1 millisecond'`;
  return slot.gate.untilQuery(sql, [time, 2 * TTL_MS]);
}

/** The zombie learns that its lease is lost, and works on. */
async function expectToBeFencedAndWork(run: string): Promise<void> {
  await zombie.next('told', { type: 'lease_lost', runId: run, node: 'entry' });
  await expectToWork();
}

/** The zombie, alone, executes another run; and all that happened is in order. */
async function expectToWork(): Promise<void> {
  await second.stop();
  await second.submit([crashRun({ again: { kind: 'ledger' } })]);
  await zombie.next('told', { type: 'completed', node: 'again' });
  await slot.runsEnd();
  expect(await slot.conclude()).toEqual([]);
}

describe('a worker that is stopped for two TTLs and continued (R12, R18)', () => {
  it.each([
    ['in a handler without effects', 'plain'],
    ['in a handler that is about to open its completion transaction', 'ledger'],
    ['inside its open completion transaction, the entry written', 'insideLedger'],
    ['in a handler that is about to fail', 'failOnce'],
  ])('%s finds its lease lost, and what it brings is dropped', async (_, kind) => {
    const run = await standInHandler(kind);
    await sleepForTwoTtls();
    await zombie.releaseAll();
    expect(await step(run)).toMatchObject({ state: 'completed', reclaims: 1 });
    await expectToBeFencedAndWork(run);
  });

  const calls: [string, string, string][] = [
    ['the flush that would complete its step', 'plain', 'completing flush'],
    ['the completion and commit of its transaction', 'insideLedger', 'complete'],
    ['the settlement of its failure', 'failOnce', 'cyclone_settle'],
    ['the begin of its completion transaction', 'ledger', 'begin'],
    ['the settlement of its snooze', 'snoozeOnce', 'cyclone_settle'],
  ];
  it.each(LONG_PROGRAMME ? calls : calls.slice(0, 3))(
    'before %s cannot touch the step that its new owner is executing',
    async (_, kind, call) => {
      const run = await standAt(kind, call, 'before');
      zombie.suspend();
      const since = await clock();
      await second.start(options, true);
      await second.next('holding', { runId: run, node: 'entry' });
      await untilTwoTtlsAfter(since);
      zombie.resume();
      await zombie.goOn();
      await zombie.next('told', { type: 'lease_lost', runId: run, node: 'entry' });
      expect(await step(run)).toEqual({ state: 'running', attempt: 1, reclaims: 1, lease_generation: 2 });
      await second.releaseAll();
      await slot.runsEnd();
      await expectToWork();
    },
  );

  it('in the middle of its completion loses it: whoever sweeps ends the session that holds the run (C3)', async () => {
    await slot.gate.shut('complete entry');
    const run = await standAt('insideLedger', 'complete', 'sent');
    zombie.suspend();
    await second.start(options);
    await slot.gate.untilQuery(`select lease_generation = 2 from cyclone_steps where node = 'entry'`);
    await slot.gate.openAll();
    await slot.runsEnd();
    zombie.resume();
    await zombie.goOn();
    expect(await step(run)).toMatchObject({ state: 'completed', attempt: 1, reclaims: 1 });
    await second.stop();
    expect(await slot.conclude()).toEqual([]);
  });
});

describe('a worker that is stopped inside its open completion transaction and never continued (C3)', () => {
  it('does not hold up the second attempt, which needs the row that the first has written', async () => {
    const run = await standInHandler('keyed');
    zombie.suspend();
    await second.start(options);
    await slot.runsEnd();
    await zombie.kill();
    expect(await slot.gate.rows('select run_id, node from keyed_ledger')).toEqual([{ run_id: run, node: 'entry' }]);
    expect(await slot.conclude()).toEqual([]);
  });

  it('does not either when the worker that took its lease away dies before it has ended the session', async () => {
    await standInHandler('keyed');
    zombie.suspend();
    const sweeper = await slot.victim({ localHeart: true });
    await sweeper.start({ ...options, queues: { elsewhere: 1 } });
    for (let reclaimed = false; !reclaimed;) {
      await sweeper.arm('cyclone_tick', 'after');
      await sweeper.goOn();
      await sweeper.next('at');
      [{ reclaimed } = { reclaimed: false }] = await slot.gate.rows<{ reclaimed: boolean }>(
        `select reclaims = 1 as reclaimed from cyclone_steps where node = 'entry'`,
      );
    }
    await sweeper.kill();
    await second.start(options);
    await slot.runsEnd();
    await zombie.kill();
    expect(await slot.conclude()).toEqual([]);
  });
});

describe('a handler that blocks the event loop for three TTLs (R18, S11)', () => {
  it('keeps its lease although another worker sweeps', async () => {
    await Promise.all([zombie.start(options), second.start({ ...options, queues: { elsewhere: 1 } })]);
    const run = crashRun({ entry: { kind: 'block' } });
    await second.submit([
      { ...run, nodes: run.nodes.map((node) => ({ ...node, inputJson: JSON.stringify({ ms: 3 * TTL_MS }) })) },
    ]);
    await slot.runsEnd();
    const [row] = await slot.gate.rows<Record<string, unknown>>(
      `select reclaims, lease_generation, finished_at - started_at > interval '1 ms' * $1 as long from cyclone_steps`,
      [3 * TTL_MS],
    );
    expect(row).toEqual({ reclaims: 0, lease_generation: 1, long: true });
    expect(await slot.conclude()).toEqual([]);
  });
});
