import { statement } from '#cyclone/store/session.js';
import type { RawClient } from '#cyclone/store/raw-client.js';
import { chain, dropTemplate, Fixture } from '../worker/fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

/**
 * Measured: a view that got another column under a named statement failed every later call with 0A000; behind a transaction-mode
 * pooler a named statement is unknown to the session (26000) or somebody else's (42P05).
 */
describe('named statements that the server no longer accepts (C15, S51)', () => {
  it('cost nothing when a view has changed under them', async () => {
    fixture = await Fixture.open();
    const query = statement('look', 'select * from looked_at');
    await fixture.rows('create view looked_at as select 1 as a');
    const held = await fixture.engine.connections.hold();
    try {
      expect(await held.session.rows(query, [])).toEqual([['1']]);
      await fixture.rows('drop view looked_at');
      await fixture.rows('create view looked_at as select 1 as a, 2 as b');
      expect(await held.session.rows(query, [])).toEqual([['1', '2']]);
    } finally {
      await held.release();
    }
  });

  it('are not tried again inside a transaction, which they have aborted', async () => {
    fixture = await Fixture.open();
    const query = statement('look', 'select * from looked_at');
    await fixture.rows('create view looked_at as select 1 as a');
    const runner = fixture.dataSource.createQueryRunner();
    const joined = await fixture.engine.connections.join(runner);
    await joined.rows(query, []);
    await fixture.rows('drop view looked_at');
    await fixture.rows('create view looked_at as select 1 as a, 2 as b');
    await runner.query('begin');
    await expect(joined.rows(query, [])).rejects.toMatchObject({ code: '0A000' });
    await runner.query('rollback');
    await runner.release();
  });

  it.each([
    ['forgotten by the session', 'deallocate all'],
    ['known to it by the same name already', undefined],
  ])('and are %s do not stop a worker', async (_, sql) => {
    let sabotages = 2; // one for each lane: what has failed once is not prepared again
    fixture = await Fixture.open({
      observer: async (call, phase, client) => {
        if (phase !== 'before' || !call.startsWith('cyclone_') || sabotages === 0 || !hasPrepared(client)) return;
        sabotages--;
        if (sql) await client.query({ text: sql });
        else forget(client);
      },
    });
    await fixture.worker({ work: () => 1 }).start();
    await fixture.submit(...Array.from({ length: 30 }, () => chain(['work', 'work', 'work'])));
    await fixture.idle();
    expect(sabotages).toBe(0);
    expect(fixture.log).toEqual([]);
    expect(fixture.stepEvents('completed')).toHaveLength(90);
  });
});

interface DriverClient {
  readonly connection: { parsedStatements: Record<string, string> };
}

function hasPrepared(client: RawClient): boolean {
  return Object.keys((client as unknown as DriverClient).connection.parsedStatements).length > 0;
}

/** Makes the driver believe that it has prepared nothing on this connection: it prepares again, and the server knows the name. */
function forget(client: RawClient): void {
  (client as unknown as DriverClient).connection.parsedStatements = {};
}
