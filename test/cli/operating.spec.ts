import { EngineDatabase, type EngineSession } from '../support/engine-sql.js';
import { cyclone, shell, type CallOptions } from './command.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

const call = (args: string[], options: CallOptions = {}) => cyclone(args, { url: database.url, ...options });
const json = async (args: string[]): Promise<unknown> => JSON.parse((await call([...args, '--format', 'json'])).stdout);

async function failed(n: number): Promise<string[]> {
  const runs = await db.submitMany(Array.from({ length: n }, () => ({ a: [] })));
  await db.fail(await db.claim({ queues: { default: n } }), { errorKind: 'permanent' });
  return runs;
}

describe('ids', () => {
  it('go from lists into actions through a pipe, and a reader may stop early', async () => {
    const runs = await failed(3);
    const other = await db.submit({ a: { kind: 'other' } });
    const piped = await shell(
      `cyclone runs list --state failed --format ids | cyclone retry - --all --attempts 2 --reason fixed --format ids
       cyclone steps ${runs[0]} --format ids
       cyclone runs list --format ids --oldest | head -1`,
      { url: database.url, env: { CYCLONE_ACTOR: 'ann' } },
    );
    expect(piped).toEqual({
      code: 0,
      stdout: `${[...runs.toReversed(), `${runs[0]} a`, runs[0]].join('\n')}\n`,
      stderr: expect.stringMatching(/^(There are more.*\n)?$/),
    });
    const audit = await db.query('select actor, action, reason, affected::int, detail from cyclone_audit');
    const row = { actor: 'ann', action: 'retry_all', reason: 'fixed', affected: 1, detail: { additionalAttempts: 2 } };
    expect(audit).toEqual(runs.map(() => row));
    expect(await db.states(other)).toBe('running: a=available');
  });

  it('that are refused do not keep the others; the first refusal gives the exit code', async () => {
    const [first = '', second = '', third = ''] = await db.submitMany([{ a: [] }, { a: [] }, { a: [] }]);
    await db.cancel(second);
    const input = `${first}\n\n 999999999999 \n${second}\nabc\n${third} a node\n${first}\n`;
    const { code, stdout, stderr } = await call(['cancel', '-', '--format', 'json', '--actor', 'bob'], { input });
    expect(code).toBe(4);
    expect(JSON.parse(stdout)).toMatchObject([
      { runId: first, outcome: 'cancelled' },
      { runId: '999999999999', outcome: 'refused', code: 'CYCLONE_RUN_NOT_FOUND' },
      { runId: second, outcome: 'refused', code: 'CYCLONE_ALREADY_TERMINAL' },
      { runId: 'abc', outcome: 'refused', code: 'CYCLONE_INVALID_OPTION' },
      { runId: third, outcome: 'cancelled' },
    ]);
    expect(stderr.trim().split('\n')).toHaveLength(3);
    expect(await db.query('select actor, run_id from cyclone_audit order by id')).toEqual([
      { actor: 'bob', run_id: first },
      { actor: 'bob', run_id: third },
    ]);
  });

  it('may name a node each for retry, and a dry run only says what would be done', async () => {
    const [run = '', other = ''] = await failed(2);
    const dry = await call(['retry', '-', '--dry-run'], { input: `${run} a\n` });
    expect(dry).toMatchObject({ code: 0, stderr: '' });
    expect(dry.stdout).toMatch(new RegExp(`^${run} +would be reopened +a$`, 'm'));
    expect(await call(['retry', '-'], { input: `${run} a\n${other}\n` })).toMatchObject({ code: 2, stdout: '' });
    expect((await db.run(run)).state).toBe('failed');
    expect((await call(['retry', '-'], { input: `${run} a\n` })).code).toBe(0);
    expect(await db.states(run)).toBe('running: a=available');
    const [{ actor } = { actor: '' }] = await db.query<{ actor: string }>('select actor from cyclone_audit');
    expect(actor).toMatch(/^.+@.+$/);
  });
});

describe('what is shown', () => {
  it('cannot steer the terminal: what it obeys or hides is spelled out in tables, JSON, ids and messages (F27)', async () => {
    const run = await db.submit(
      { 'a\u001b[2J\u009b': { maxAttempts: 1 } },
      { workflow: 'flow\u202e', tags: { k: 'v\u0007\u{e0041}' } },
    );
    await db.fail(await db.claimOne(), { error: 'line 1\nline 2\t\u001b]0;owned\u0007\u009b31m\u{e0041}\u00ad' });
    const [steps, runs, missing, asJson, runJson, ids, explained] = await Promise.all([
      call(['steps', run]),
      call(['runs', 'list']),
      call(['explain', run, 'b\u001b[2J']),
      call(['steps', run, '--format', 'json']),
      call(['runs', 'get', run, '--format', 'json']),
      call(['steps', run, '--format', 'ids']),
      call(['explain', run, 'a\u001b[2J\u009b', '--format', 'json']),
    ]);
    expect(steps.stdout).toMatch(
      /^a\\x1b\[2J\\x9b .* line 1\\nline 2\\t\\x1b\]0;owned\\x07\\x9b31m\\u\{e0041\}\\xad$/m,
    );
    expect(runs.stdout).toMatch(/ flow\\u202e$/m);
    expect(missing.stderr).toContain('b\\x1b[2J');
    for (const { stdout, stderr } of [steps, runs, missing, asJson, runJson, ids, explained])
      expect(stdout + stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u202e\u{e0041}]/u);
    expect(asJson.stdout).toContain('\\u009b31m\\udb40\\udc41\\u00ad');
    expect(JSON.parse(asJson.stdout)).toMatchObject([
      { node: 'a\u001b[2J\u009b', error: 'line 1\nline 2\t\u001b]0;owned\u0007\u009b31m\u{e0041}\u00ad' },
    ]);
    expect(JSON.parse(runJson.stdout)).toMatchObject({ workflow: 'flow\u202e', tags: { k: 'v\u0007\u{e0041}' } });
    expect(ids.stdout).toBe(`${run} "a\\u001b[2J\\u009b"\n`);
  });

  it('says how far a running step has come (R18)', async () => {
    const run = await db.submit({ a: [] });
    const { node, generation } = await db.claimOne();
    await db.call('cyclone_heartbeat', 'me', 30_000, [run], [node], [generation], [0.427], ['page 3\nof 7']);
    expect((await call(['steps', run])).stdout).toMatch(/ running \(42 %, page 3\\nof 7\) /);
    expect(await json(['steps', run])).toMatchObject([{ progress: 0.427, progress_note: 'page 3\nof 7' }]);
    await db.flush([{ run_id: run, node, generation }]);
    expect((await call(['steps', run])).stdout).toMatch(/ completed {2,}/);
  });

  it('is one run, a list of runs by filter and page, and why a node does not run', async () => {
    const runs = await db.submitMany([{ a: [], b: ['a'] }, { a: [] }, { a: [] }], { tags: { shop: `o'brien` } });
    const [first = '', second = '', third = ''] = runs;
    await db.pause(third);
    const [get, got, page, tagged, explained, reasons] = await Promise.all([
      call(['runs', 'get', first]),
      json(['runs', 'get', first]),
      call(['runs', 'list', '--state', 'running,paused', '--limit', '2', '--since', '1h']),
      call(['runs', 'list', '--tag', `shop=o'brien`, '--workflow', 'flow', '--limit', '2', '--format', 'ids']),
      call(['explain', first, 'b']),
      json(['explain', third, 'a']),
    ]);
    expect(get.stdout).toMatch(/^id +\d+\nworkflow +flow\nstate +running\n/);
    expect(got).toMatchObject({ id: first, state: 'running', tags: { shop: `o'brien` } });
    expect(page.stdout).toMatch(new RegExp(`^RUN +STATE .*\\n${third} +paused .*\\n${second} +running .*\\n$`));
    expect(page.stderr).toContain('There are more');
    expect(tagged.stdout).toBe(`${third}\n${second}\n`);
    const cursor = /--cursor (\S+)/.exec(tagged.stderr)?.[1] ?? '';
    const rest = ['runs', 'list', '--tag', `shop=o'brien`, '--workflow', 'flow', '--format', 'ids', '--cursor', cursor];
    expect(await call(rest)).toMatchObject({ stdout: `${first}\n`, stderr: '' });
    expect(explained.stdout).toMatch(/^because +It waits for 1 of 1 nodes before it: a \(available\)\.$/m);
    expect(reasons).toMatchObject({ state: 'paused', because: [expect.stringContaining('resume it')] });
  });

  it('is how everything stands, who works, and what is wrong with it; doctor tells with its exit code', async () => {
    await failed(1);
    await db.submit({ a: [] });
    const [stats, statsJson, nobody, doctor] = await Promise.all([
      call(['stats']),
      json(['stats']),
      call(['workers']),
      call(['doctor']),
    ]);
    expect(stats.stdout).toMatch(/^runs +1 running, 1 failed\nsteps +1 available, 1 discarded\n/);
    expect(stats.stdout).toMatch(/^work +0 +1 +1 +0 +0 +0 +\d+s$/m);
    expect(statsJson).toMatchObject({ runs: { failed: { count: 1, capped: false } }, health: { strandedRuns: 0 } });
    expect(nobody).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('No worker is known') });
    expect(doctor.code).toBe(6);
    expect(doctor.stdout).toMatch(/^warning +workers +No worker is alive\. → /m);
    expect(doctor.stdout).toMatch(/^ok +isolation /m);

    await db.query(`select cyclone_register_worker('w1', 'host', 7, '1.0', '{"default": 3}', '{work}')`);
    const [workers, healthy] = await Promise.all([call(['workers']), json(['doctor'])]);
    expect(workers.stdout).toMatch(/^w1 +idle +0 +default:3 +host +7 +1\.0 .* work +-$/m);
    expect(healthy).toContainEqual(expect.objectContaining({ check: 'workers', level: 'ok' }));
  });
});

describe('long work', () => {
  it('ends between two runs when it is interrupted, and says what it has done', async () => {
    await failed(400);
    let stopped = false;
    const { code, stdout, stderr } = await call(['dlq', 'retry', '--all', '--yes', '--format', 'ids'], {
      onOutput: (child) => {
        if (!stopped) child.kill('SIGINT');
        stopped = true;
      },
    });
    expect(code).toBe(130);
    const reopened = stdout.trim().split('\n');
    expect(stderr).toBe(`Requeued ${reopened.length} run(s).\nInterrupted. What was done stays done.\n`);
    const count = await db.value<number>(`select count(*)::int from cyclone_runs where state = 'running'`);
    expect(count).toBe(reopened.length);
    expect(count).toBeLessThan(400);
  });

  it('purges what is old enough, or only counts it', async () => {
    const runs = await failed(3);
    await db.query(`update cyclone_runs set finished_at = now() - interval '40 d' where id <> $1`, [runs[0]]);
    expect(await json(['purge', '--older-than', '30d'])).toEqual({ runs: 2, steps: 2, blocked: [] });
    const purged = await call([
      'purge',
      '--older-than',
      '30d',
      '--yes',
      '--limit',
      '1',
      '--actor',
      'ann',
      '--reason',
      'space',
    ]);
    expect(purged).toMatchObject({ code: 0, stdout: 'runs     1\nsteps    1\nblocked  0\n', stderr: '' });
    expect(await db.query('select actor, action, reason, affected::int from cyclone_audit')).toEqual([
      { actor: 'ann', action: 'purge', reason: 'space', affected: 1 },
    ]);
  });
});
