import { deferred, dropTemplate, Fixture, job } from '../worker/fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

const MEBIBYTE = 1_048_576;
const LARGE = 'x'.repeat(MEBIBYTE - 100);
const STEPS = 24;
/** What one call carries at most. */
const BOUND = 4 * MEBIBYTE;

/** No measurement: without a bound a full batch of large outputs is half a gigabyte in one message. */
describe('a flush is bounded by bytes as well as by count (C13)', () => {
  it('carries large outputs in several calls, and claims large inputs in several', async () => {
    let flushes = 0;
    fixture = await Fixture.open({
      observer: (call, phase) => {
        if (call === 'cyclone_flush' && phase === 'sent') flushes++;
      },
    });
    const go = deferred();
    await fixture
      .worker({ work: () => go.promise.then(() => LARGE) }, { queues: { default: STEPS } }, { listen: false })
      .start();
    for (let i = 0; i < STEPS; i++) await fixture.submitOne(job('work', LARGE));
    await fixture.until(`select count(*) = ${STEPS} from cyclone_steps where state = 'running'`);
    flushes = 0;
    go.resolve();
    await fixture.idle();
    expect(flushes).toBeGreaterThanOrEqual((STEPS * LARGE.length) / BOUND);
  });
});
