import { startPostgres, type PostgresServer } from '../support/postgres.js';
import { deferred, Fixture, job } from '../worker/fixture.js';

let server: PostgresServer;
let fixture: Fixture;
beforeAll(async () => {
  server = await startPostgres({ settings: { max_prepared_transactions: 1 } });
});
afterEach(() => fixture.close());
afterAll(() => server.destroy());

/**
 * Measured: after an outage in which leases expired, whoever reconnected first took the steps of a whole healthy fleet away, before the
 * others had had the time to renew.
 */
describe('after an outage in which leases have expired (C8)', () => {
  it('no worker takes a step away before everybody had the time to renew', async () => {
    fixture = await Fixture.open({ server: server.url });
    const other = await fixture.another();
    const go = deferred();
    const options = { leaseTtl: 18_000, queues: { default: 3 } };
    for (const process of [fixture, other]) await process.worker({ work: () => go.promise }, options).start();
    await fixture.submit(...Array.from({ length: 6 }, () => job('work')));
    await fixture.until(
      `select count(*) = 6 and count(distinct lease_owner) = 2 from cyclone_steps where state = 'running'`,
    );

    // Prepared, so that nobody sees it before the outage, and it outlives it.
    const runner = fixture.dataSource.createQueryRunner();
    await runner.query('begin');
    await runner.query('update cyclone_steps set lease_expiry = clock_timestamp()');
    await runner.query(`prepare transaction 'expired'`);
    await runner.release();
    await server.restart('immediate');
    await fixture.until('select true');
    await fixture.rows(`commit prepared 'expired'`);
    await fixture.until(`select count(*) = 6 from cyclone_steps where lease_expiry > clock_timestamp()`);
    go.resolve();
    await fixture.idle();
    expect(
      await fixture.rows(
        'select state, reclaims, max(lease_generation) as generation, count(*)::int as n from cyclone_steps group by 1, 2',
      ),
    ).toEqual([{ state: 'completed', reclaims: 0, generation: 1, n: 6 }]);
  });
});
