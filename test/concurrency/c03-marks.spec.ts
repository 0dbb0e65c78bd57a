import { CompletionStore } from '#cyclone/store/completion-store.js';
import { EngineStore } from '#cyclone/store/engine-store.js';
import { migrate } from '#cyclone/store/migrator.js';
import type { HeldSession } from '#cyclone/store/connections.js';
import { dropTemplate, Fixture } from '../worker/fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

/** Runs of several Cyclones in one database have the same numbers. */
const LEASE = { runId: '1', node: 'work', generation: 1 };
const OTHER = `it's "another" schema`;

/** The completion transactions of the same run number, node and generation in both schemas. */
async function openBoth(): Promise<{ ours: HeldSession; others: HeldSession }> {
  fixture = await Fixture.open();
  await migrate(fixture.dataSource, { schema: OTHER });
  const [ours, others] = [await fixture.engine.connections.hold(), await fixture.engine.connections.hold()];
  await new CompletionStore('public').begin(ours.session, LEASE, false);
  await new CompletionStore(OTHER).begin(others.session, LEASE, false);
  return { ours, others };
}

/** Only one of the sessions has ended. */
async function expectEnded(ended: HeldSession, alive: HeldSession): Promise<void> {
  await expect(ended.session.script('look', 'select 1')).rejects.toBeInstanceOf(Error);
  await expect(alive.session.script('look', 'select 1')).resolves.toHaveLength(1);
  await ended.release(true);
  await alive.release(true);
}

describe('two Cyclones in one database, in schemas of their own (C3)', () => {
  it('end only the sessions of their own leases', async () => {
    const { ours, others } = await openBoth();
    await fixture.engine.connections.use(async (session) => {
      expect(await new EngineStore(OTHER).endBackends(session, [LEASE])).toBe(1);
    });
    await expectEnded(others, ours);
  });

  it.each(['ours', 'others'] as const)(
    'end only %s when the housekeeping finds sessions of leases that are over',
    async (whose) => {
      const both = await openBoth();
      const schema = whose === 'ours' ? 'public' : `"${OTHER.replaceAll('"', '""')}"`;
      await fixture.rows(
        `insert into ${schema}.cyclone_attempts (run_id, node, generation, attempt, ended_at, outcome)
       values (1, 'work', 1, 1, now() - interval '5 s', 'reclaimed')`,
      );
      await fixture.rows(`select ${schema}.cyclone_end_orphans(now())`);
      await expectEnded(both[whose], whose === 'ours' ? both.others : both.ours);
    },
  );
});
