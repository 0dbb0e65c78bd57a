import { dropTemplate, Fixture, job } from './fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

describe('the health of a worker', () => {
  it('is bad, with the reason and what to do, while its role gets no connection, and good afterwards (F49)', async () => {
    fixture = await Fixture.open();
    const role = `limited_${fixture.database.name}`;
    await fixture.rows(`create role ${role} login password 'x'`);
    try {
      await fixture.rows(`grant all on schema public to ${role}`);
      for (const what of ['tables', 'functions', 'sequences']) {
        await fixture.rows(`grant all on all ${what} in schema public to ${role}`);
      }
      const limited = await fixture.another({ poolSize: 4, password: () => 'x', extra: { user: role } });
      await fixture.rows(`alter role ${role} connection limit 0`);
      const worker = limited.worker({ work: () => null });
      await worker.start();
      while (!worker.health().problems.some((problem) => problem.includes('too many connections')))
        await fixture.pause();
      expect(worker.health()).toMatchObject({ state: 'running', healthy: false });
      const said = (): boolean => limited.log.some((line) => line.includes('too many connections'));
      while (!said()) await fixture.pause();

      const id = await fixture.submitOne(job('work'));
      await fixture.rows(`alter role ${role} connection limit -1`);
      await fixture.until(`select state = 'completed' from cyclone_runs where id = ${id}`);
      while (!worker.health().healthy) await fixture.pause();
      expect(worker.health().problems).toEqual([]);
      expect((await fixture.step(id, 'work')).attempt).toBe(1);
    } finally {
      await fixture.rows(`drop owned by ${role}`);
      await fixture.rows(`drop role ${role}`);
    }
  });

  it('tells operators in the row of the worker what it suffers from, until it is over (R41)', async () => {
    fixture = await Fixture.open();
    const observer = await fixture.another({ poolSize: 1 });
    const worker = fixture.worker({ work: () => null });
    await worker.start();
    await fixture.until(`select exists (select from cyclone_workers)`);
    await observer.rows('alter function cyclone_claim rename to renamed');
    try {
      await fixture.submitOne(job('work'));
      await observer.until(`select problems::text like '%could not be claimed%' from cyclone_workers`);
      expect(worker.health().healthy).toBe(false);
    } finally {
      await observer.rows('alter function renamed rename to cyclone_claim');
    }
    await observer.until(`select problems is null from cyclone_workers`);
    await fixture.idle();
    expect(worker.health().healthy).toBe(true);
  });
});
