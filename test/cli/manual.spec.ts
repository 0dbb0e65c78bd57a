// The command lines of the operations manual, its placeholders filled in, in the situations that it describes.
import { EngineDatabase, type EngineSession } from '../support/engine-sql.js';
import { cyclone, type Outcome } from './command.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
beforeEach(() => db.query('alter sequence cyclone_runs_id_seq restart with 42'));
afterEach(() => database.clear());
afterAll(() => database.drop());

/** A command line as the manual prints it. */
const call = (line: string): Promise<Outcome> => cyclone(line.split(' ').slice(1), { url: database.url });
const email = { kind: 'send_email', maxAttempts: 1 };
const kinds = ['send_email', 'charge'];

describe('a handler that panicked', () => {
  it('is seen with its stack in JSON only, retried by name or as a whole, paused and resumed', async () => {
    const run = await db.submit({ charge: { kind: 'charge', maxAttempts: 1 }, send: { ...email, after: ['charge'] } });
    await db.fail(await db.claimOne({ kinds }), { error: 'handler panicked: x', stack: 'at charge (orders.ts:3)' });

    const [table, json] = await Promise.all([call(`cyclone steps ${run}`), call(`cyclone steps --format json ${run}`)]);
    expect(table).toMatchObject({ code: 0, stderr: '' });
    expect(table.stdout).toMatch(/^NODE +TYPE +KIND +STATE +ATTEMPT/);
    expect(table.stdout).toMatch(/^charge +step +charge +discarded +1\/1 .*handler panicked: x$/m);
    expect(table.stdout).toMatch(/^send +step +send_email +cancelled/m);
    expect(table.stdout).not.toContain('orders.ts');
    expect(JSON.parse(json.stdout)).toMatchObject([
      { run_id: run, node: 'charge', error: 'handler panicked: x', panic_stack: 'at charge (orders.ts:3)' },
      { node: 'send', panic_stack: null },
    ]);
    expect((await call('cyclone steps 42 --format json')).stdout).toBe(json.stdout);

    expect(await call(`cyclone retry ${run} charge`)).toMatchObject({ code: 0, stderr: '' });
    expect(await db.states(run)).toBe('running: charge=available send=pending');
    await db.failForGood(await db.claimOne({ kinds }));
    expect(await call(`cyclone retry ${run} --all`)).toMatchObject({ code: 0, stderr: '' });
    expect(await db.states(run)).toBe('running: charge=available send=pending');

    expect((await call('cyclone pause 42')).stdout).toMatch(/^42 +paused/m);
    expect(await db.states(run)).toBe('paused: charge=paused send=pending');
    expect((await call('cyclone resume 42')).stdout).toMatch(/^42 +resumed/m);
    expect(await db.states(run)).toBe('running: charge=available send=pending');
    const again = await call('cyclone resume 42');
    expect(again).toMatchObject({ code: 5, stdout: '' });
    expect(again.stderr).toContain('Run 42 is running, not paused');
  });
});

describe('the dead-letter queue', () => {
  it('is listed by kind, reason and age, and requeued in bulk', async () => {
    const [permanent = '', exhausted = ''] = await db.submitMany([{ a: email }, { a: email }]);
    const [first, second] = await db.claim({ kinds });
    await db.failForGood(first!, { error: 'no such address' });
    await db.fail(second!, { error: 'SMTP down' });
    const crashing = await db.submit({ c: { kind: 'charge' } });
    await db.claimOne({ kinds });
    await db.query(`update cyclone_steps set lease_expiry = now() - interval '1 s' where run_id = $1`, [crashing]);
    await db.sweep({ maxReclaims: 0 });

    const lines = [
      'cyclone dlq list',
      'cyclone dlq list --kind send_email',
      'cyclone dlq list --reason permanent',
      'cyclone dlq list --reason reclaim_limit',
      'cyclone dlq list --since 24h --limit 50',
    ].map((line) => call(`${line} --format json`));
    const listed = (await Promise.all(lines)).map(({ code, stdout }) => ({
      code,
      runs: (JSON.parse(stdout) as { runId: string }[]).map(({ runId }) => runId),
    }));
    expect(listed).toEqual([
      { code: 0, runs: [crashing, exhausted, permanent] },
      { code: 0, runs: [exhausted, permanent] },
      { code: 0, runs: [permanent] },
      { code: 0, runs: [crashing] },
      { code: 0, runs: [crashing, exhausted, permanent] },
    ]);
    const [table, groups, dry] = await Promise.all([
      call('cyclone dlq list --reason permanent'),
      call('cyclone dlq groups'),
      call('cyclone dlq retry --kind send_email --since 24h --attempts 3'),
    ]);
    expect(table.stdout).toMatch(/^42 +a +send_email +permanent +1\/1 .* failed +no such address$/m);
    expect(groups.stdout).toMatch(/^send_email +permanent +1 +1 .*42 a +no such address$/m);
    expect(dry).toMatchObject({
      code: 0,
      stderr: 'Would requeue 2 run(s).\nNothing was changed: say --yes to do it.\n',
    });
    expect((await db.run(permanent)).state).toBe('failed');

    const requeued = await call('cyclone dlq retry --kind send_email --since 24h --attempts 3 --yes');
    expect(requeued).toMatchObject({ code: 0, stderr: 'Requeued 2 run(s).\n' });
    expect(requeued.stdout).toMatch(/^42 +reopened$/m);
    expect(await db.step(permanent, 'a')).toMatchObject({ state: 'available', max_attempts: 4 });
    expect((await db.run(crashing)).state).toBe('failed');
  });
});

describe('stranded runs', () => {
  /** A run whose first node is completed, though its dependent was never told. */
  async function strand(): Promise<string> {
    const run = await db.submit({ a: [], b: ['a'] });
    await db.query('set session_replication_role = replica');
    await db.query(
      `update cyclone_steps set state = 'completed', finished_at = now() where run_id = $1 and node = 'a'`,
      [run],
    );
    await db.query('set session_replication_role = origin');
    return run;
  }

  it('are found by a dry run, and mended one by one', async () => {
    const run = await strand();
    const dry = await call('cyclone repair stranded-runs');
    expect(dry).toMatchObject({
      code: 0,
      stderr: 'Found 1 run(s) to repair.\nNothing was changed: say --yes --all to do it.\n',
    });
    expect(dry.stdout).toMatch(/^42 +flow +yes +found +.*pending although everything before it has completed: b/m);
    expect(await db.states(run)).toBe('running: a=completed b=pending');

    const mended = await call('cyclone repair stranded-runs --yes --all');
    expect(mended.code).toBe(0);
    expect(mended.stderr).toMatch(/^WARN Repaired run 42 \(flow\): .*\nRepaired 1 run\(s\)\.\n$/s);
    expect(await db.states(run)).toBe('running: a=completed b=available');
    expect(await call('cyclone repair stranded-runs --batch 500 --yes --all')).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'Repaired 0 run(s).\n',
    });
  });
});
