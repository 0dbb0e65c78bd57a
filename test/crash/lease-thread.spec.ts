import { crashRun } from '../support/crash-runs.js';
import { createCrashTemplate, CrashSlot } from '../support/crash-slot.js';
import type { WorkerProcess } from '../support/crash-worker.js';
import type { TestDatabase } from '../support/postgres.js';

const TTL_MS = 6_000;

let template: TestDatabase;
let slot: CrashSlot;
let victim: WorkerProcess;

beforeAll(async () => {
  template = await createCrashTemplate();
  slot = await CrashSlot.open(template);
});
afterEach(() => slot.reset());
afterAll(async () => {
  await slot.close();
  await template.drop();
});

/** A handler stands still, and a renewal of its lease stands in the database; gives the backend of the lease thread. */
async function standInRenewal(): Promise<number> {
  victim = await slot.victim();
  await slot.gate.shut('beat entry');
  await victim.start({ leaseTtl: TTL_MS }, true);
  const survivor = await slot.survivor();
  await survivor.submit([crashRun({ entry: { kind: 'insideLedger' }, next: { kind: 'ledger', after: ['entry'] } })]);
  await victim.next('holding');
  const renewing = `application_name = 'cyclone-leases' and cardinality(pg_blocking_pids(pid)) > 0`;
  await slot.gate.untilQuery(`select exists (select 1 from pg_stat_activity where ${renewing})`);
  const [row] = await slot.gate.rows<{ pid: number }>(`select pid from pg_stat_activity where ${renewing}`);
  return row?.pid ?? 0;
}

async function firstStep(): Promise<Record<string, unknown> | undefined> {
  const [row] = await slot.gate.rows<Record<string, unknown>>(
    `select state, attempt, reclaims, lease_generation from cyclone_steps where node = 'entry'`,
  );
  return row;
}

/** The calls of the lease thread are seen by no observer of the process: what happens to them happens from outside. */
describe('a renewal by the lease thread (R18)', () => {
  it('whose backend is terminated in flight is sent again on a new connection, and the lease holds', async () => {
    const pid = await standInRenewal();
    await slot.gate.terminate(pid);
    await slot.gate.openAll();
    await slot.gate.untilQuery(
      `select exists (select 1 from cyclone_steps where node = 'entry' and lease_expiry > started_at + $1 * interval '1 millisecond')`,
      [TTL_MS],
    );
    await victim.releaseAll();
    await slot.runsEnd();
    expect(await firstStep()).toEqual({ state: 'completed', attempt: 1, reclaims: 0, lease_generation: 1 });
    expect(await slot.conclude()).toEqual([]);
  });

  it('of a process that is killed may commit after its death; then the lease expires all the same', async () => {
    const pid = await standInRenewal();
    await victim.kill();
    await slot.gate.openAll();
    await slot.gate.gone(pid);
    const survivor = await slot.survivor();
    await survivor.start({ leaseTtl: TTL_MS });
    await slot.runsEnd();
    expect(await firstStep()).toEqual({ state: 'completed', attempt: 1, reclaims: 1, lease_generation: 2 });
    expect(await slot.conclude()).toEqual([]);
  });
});
