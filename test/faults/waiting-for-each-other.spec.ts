import { dropTemplate, Fixture, job } from '../worker/fixture.js';
import { LONG_PROGRAMME } from './programme.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

const describeLong = LONG_PROGRAMME ? describe : describe.skip;

describeLong('handlers that wait for each other for connections (R42, F14)', () => {
  it('let go after 30 s, uncharged, and all complete', async () => {
    fixture = await Fixture.open({ poolSize: 4 });
    const probe = await fixture.another({ poolSize: 2 });
    // Both are in their first half before either goes on: one has the pool's last connection, the other the completion transaction.
    const halves = { own: 0, transaction: 0 };
    const both = async (): Promise<void> => {
      while (halves.own === 0 || halves.transaction === 0) await new Promise((resolve) => setImmediate(resolve));
    };
    await fixture
      .worker({
        own: (_: unknown, ctx) =>
          fixture.dataSource.transaction(async (own) => {
            await own.query('select 1');
            halves.own++;
            await both();
            await ctx.completionTx();
          }),
        transaction: async (_: unknown, ctx) => {
          await ctx.completionTx();
          halves.transaction++;
          await both();
          await fixture.dataSource.query('select 1');
        },
      })
      .start();
    await probe.submit(job('own', null, { maxAttempts: 1 }), job('transaction', null, { maxAttempts: 1 }));
    const ended = `select bool_and(state = 'completed') from cyclone_runs`;
    for (let patience = 0; patience < 5; patience++) await probe.until(ended).catch(() => undefined);
    await probe.until(ended);
    expect(await probe.rows('select node, outcome, error from cyclone_attempts')).toEqual([
      { node: 'own', outcome: 'interrupted', error: expect.stringContaining('poolSize') },
    ]);
  });
});
