import { Discard, TestClient } from './fixture.js';
import { EchoFlow, Pay, Wide } from './workflows.js';

let t: TestClient;
beforeAll(async () => {
  t = await TestClient.open();
});
afterAll(() => t.close());
beforeEach(async () => {
  await t.sql('truncate cyclone_runs, cyclone_steps, cyclone_deps, cyclone_attempts, cyclone_audit cascade');
  t.reset();
});

const audit = () =>
  t.sql('select actor, action, run_id, node, reason, affected::int, detail from cyclone_audit order by id');
const stateOf = async (id: string) => (await t.operator.run(id)).state;
const refused = (option: string) => ({ code: 'CYCLONE_INVALID_OPTION', option });

/** Runs of one echo step each that was discarded. */
async function failed(n: number, discard = new Discard('no')): Promise<string[]> {
  const runs = await t.client.submitMany(
    EchoFlow,
    Array.from({ length: n }, () => 1),
  );
  if (discard.errorKind === 'retryable') await t.sql('update cyclone_steps set max_attempts = 1');
  await t.work(() => discard);
  return runs.map(({ id }) => id);
}

describe('a change of one run', () => {
  it('leaves who did what and why in the audit, in its own transaction, when it names an actor', async () => {
    const [id = ''] = await failed(1);
    await t.operator.retry(id, 'echo', { actor: 'ann', reason: 'fixed', additionalAttempts: 2 });
    await t.operator.pause(id, { actor: 'ann' });
    await t.operator.resume(id, { actor: 'bob' });
    await t.operator.cancel(id, { actor: 'bob', reason: 'enough' });
    expect(await audit()).toEqual([
      {
        actor: 'ann',
        action: 'retry',
        run_id: id,
        node: 'echo',
        reason: 'fixed',
        affected: 1,
        detail: { additionalAttempts: 2 },
      },
      { actor: 'ann', action: 'pause', run_id: id, node: null, reason: null, affected: 1, detail: null },
      { actor: 'bob', action: 'resume', run_id: id, node: null, reason: null, affected: 1, detail: null },
      { actor: 'bob', action: 'cancel', run_id: id, node: null, reason: 'enough', affected: 1, detail: null },
    ]);
    expect(t.calls.filter((call) => call.startsWith('cyclone_operate'))).toHaveLength(4);
    expect((await t.operator.run(id)).cancelReason).toBe('enough');
    const page = await t.operator.audit({ runId: id, actor: 'bob', limit: 1 });
    expect(page).toMatchObject({ entries: [{ action: 'cancel', affected: 1 }], next: expect.any(String) });
    const rest = await t.operator.audit({ runId: id, actor: 'bob', limit: 1, cursor: page.next ?? '' });
    expect(rest).toMatchObject({ entries: [{ action: 'resume' }], next: null });
  });

  it('keeps its reason also when it names no actor, and leaves no row without either (F20)', async () => {
    const [id = ''] = await failed(1);
    await t.operator.retry(id, 'echo', { reason: 'smtp is back' });
    await t.operator.pause(id, { reason: 'warehouse is down' });
    await t.operator.resume(id, { reason: 'warehouse is up' });
    await t.operator.cancel(id);
    await t.operator.retryAll((await failed(1))[0] ?? '', { reason: 'all of it' });
    await t.operator.retryExhausted({ all: true }, { dryRun: false, reason: 'nothing is left' });
    await (await t.client.submit(EchoFlow, 1)).cancel('by its handle');
    await t.operator.purgeTerminalRuns({ olderThan: 0, dryRun: false, reason: 'space' });
    await t.operator.purgeTerminalRuns({ olderThan: 0, dryRun: false });
    expect((await audit()).map(({ actor, action, reason }) => `${actor}: ${action}, ${reason}`)).toEqual([
      'role cyclone_test_worker: retry, smtp is back',
      'role cyclone_test_worker: pause, warehouse is down',
      'role cyclone_test_worker: resume, warehouse is up',
      'role cyclone_test_worker: retry_all, all of it',
      'role cyclone_test_worker: cancel, by its handle',
      'role cyclone_test_worker: purge, space',
    ]);
  });

  it('that is refused leaves no audit row, and wrong notes change nothing', async () => {
    const [id = ''] = await failed(1);
    await expect(t.operator.resume(id, { actor: 'ann' })).rejects.toMatchObject({ code: 'CYCLONE_NOT_PAUSED' });
    await expect(t.operator.retryAll(id, { actor: '' })).rejects.toMatchObject(refused('actor'));
    await expect(t.operator.retryAll(id, { actor: 7 as never })).rejects.toMatchObject(refused('actor'));
    await expect(t.operator.retryAll(id, { actor: 'ann', reason: 7 as never })).rejects.toMatchObject(
      refused('reason'),
    );
    expect(await audit()).toEqual([]);
    expect(await stateOf(id)).toBe('failed');
  });
});

describe('dead letters (R24)', () => {
  it('are listed newest first, by kind, reason and age', async () => {
    const [permanent] = await failed(1);
    const [exhausted] = await failed(1, new Discard('boom', 'retryable'));
    const all = await t.operator.listExhausted();
    expect(all).toMatchObject([
      {
        runId: exhausted,
        node: 'echo',
        kind: 'echo',
        error: 'boom',
        errorKind: 'retryable',
        attempts: 1,
        maxAttempts: 1,
      },
      {
        runId: permanent,
        node: 'echo',
        kind: 'echo',
        error: 'no',
        errorKind: 'permanent',
        discardedAt: expect.any(String),
      },
    ]);
    expect(await t.operator.listExhausted({ reason: 'permanent', kind: 'echo', since: '1h' })).toHaveLength(1);
    expect(await t.operator.listExhausted({ reason: '' })).toHaveLength(2);
    expect(await t.operator.listExhausted({ kind: `echo' or 1=1 --` })).toEqual([]);
    expect(await t.operator.dlqGroups({ kind: 'echo', since: '1h' })).toMatchObject([
      { kind: 'echo', steps: 1, runs: 1 },
      { kind: 'echo', steps: 1, runs: 1 },
    ]);
    await t.sql(`update cyclone_steps set finished_at = now() - interval '2 h' where run_id = $1`, [permanent]);
    expect(await t.operator.listExhausted({ since: '1h' })).toMatchObject([{ runId: exhausted }]);
  });

  it('come by pages whose cursors fit their filter only', async () => {
    const runs = await failed(5);
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await t.operator.exhaustedPage({ limit: 2, ...(cursor ? { cursor } : {}) });
      seen.push(...page.steps.map(({ runId }) => runId));
      cursor = page.next ?? undefined;
      if (cursor) {
        await expect(t.operator.exhaustedPage({ kind: 'other', cursor })).rejects.toMatchObject(refused('cursor'));
      }
    } while (cursor);
    expect(seen.toSorted()).toEqual(runs.toSorted());
  });

  it('bring their runs back, one transaction each, and those that cannot be retried are skipped', async () => {
    const runs = await failed(4);
    const child = runs[0] ?? '';
    await t.sql(`update cyclone_runs set parent_run_id = $1, parent_node = 'x' where id = $2`, [runs[1], child]);
    t.observer = async (call, phase) => {
      if (call !== 'cyclone_operate' || phase !== 'before') return;
      t.observer = undefined;
      await t.operator.retryAll(runs[3] ?? ''); // somebody else was faster
    };
    const progress: unknown[] = [];
    const reopened = await t.operator.retryExhausted(
      { kind: 'echo' },
      {
        dryRun: false,
        additionalAttempts: 3,
        actor: 'ann',
        reason: 'fixed',
        onProgress: (now) => progress.push(now),
      },
    );
    expect(reopened).toBe(2);
    expect(await Promise.all(runs.map(stateOf))).toEqual(['failed', 'running', 'running', 'running']);
    expect(progress).toHaveLength(3);
    expect(progress.at(-1)).toMatchObject({ reopened: 2, skipped: 1 });
    const [step] = await t.operator.steps(runs[2] ?? '');
    expect(step).toMatchObject({ state: 'available', max_attempts: 8 });
    expect(await audit()).toMatchObject([
      {
        actor: 'ann',
        action: 'retry_all',
        reason: 'fixed',
        detail: { bulk: 'retry_exhausted', filter: { kind: 'echo' } },
      },
      {},
    ]);
  });

  it('are only counted by a dry run, up to the limit, and a signal ends the work between two runs', async () => {
    await failed(4);
    expect(await t.operator.retryExhausted({ limit: 3 }, { dryRun: true })).toBe(3);
    const controller = new AbortController();
    const reopened = await t.operator.retryExhausted(
      { all: true },
      { dryRun: false, signal: controller.signal, onProgress: ({ reopened: n }) => n === 2 && controller.abort() },
    );
    expect(reopened).toBe(2);
    expect(await t.operator.countRuns({ states: ['failed'] })).toEqual({ count: 2, capped: false });
  });

  it.each([
    ['limit', { limit: 0 }],
    ['limit', { limit: 1e9 }],
    ['limit', { limit: 1.5 }],
    ['reason', { reason: `permanent' or 1=1 --` }],
    ['since', { since: '-1h' }],
    ['since', { since: 0 }],
    ['kind', { kind: 5 }],
    ['kind', { kind: 'a\u0000b' }],
    ['fingerprint', { fingerprint: 'x'.repeat(2000) }],
  ])('refuse a wrong %s: %j', async (option, query) => {
    await expect(t.operator.listExhausted(query as never)).rejects.toMatchObject(refused(option));
    await expect(t.operator.retryExhausted(query as never, { dryRun: true })).rejects.toMatchObject(refused(option));
    expect(t.calls).toEqual([]);
  });
});

describe('a change of many runs (F3)', () => {
  it.each([
    ['retryExhausted', [{ kind: 'echo' }, {}]],
    ['retryExhausted', [{ kind: 'echo' }, { dryRun: undefined }]],
    ['retryExhausted', []],
    ['purgeTerminalRuns', [{ olderThan: 0 }]],
    ['purgeTerminalRuns', []],
    ['repairStrandedRuns', [{}]],
    ['repairStrandedRuns', []],
  ])('is a dry run unless dryRun is false: %s(%j)', async (method, given) => {
    const runs = await failed(2);
    await t.operator[method as 'purgeTerminalRuns'](...(given as never as [never]));
    expect(await Promise.all(runs.map(stateOf))).toEqual(['failed', 'failed']);
    expect(await audit()).toEqual([]);
  });

  it.each([
    ['retryExhausted', [{}, { dryRun: false }], 'all'],
    ['retryExhausted', [undefined, { dryRun: false }], 'all'],
    ['retryExhausted', [{ limit: 1 }, { dryRun: false }], 'all'],
    ['retryExhausted', [{ reason: '' }, { dryRun: false }], 'all'],
    ['retryExhausted', [{ all: 'true' }, { dryRun: false }], 'all'],
    ['retryExhausted', [{ kind: 'echo' }, { dryRun: 'false' }], 'dryRun'],
    ['retryExhausted', [{ kind: 'echo' }, { dryRun: 0 }], 'dryRun'],
    ['retryExhausted', [{ kinds: 'mail' }, { dryRun: false }], 'query.kinds'],
    ['retryExhausted', [{ kind: 'echo' }, { dry_run: true }], 'dry_run'],
    ['purgeTerminalRuns', [{ dryRun: false }], 'all'],
    ['purgeTerminalRuns', [{ dryRun: false, limit: 5 }], 'all'],
    ['purgeTerminalRuns', [{ dryRun: false, older_than: '1d' }], 'older_than'],
    ['repairStrandedRuns', [{ dryRun: false }], 'all'],
  ])(
    'without a filter has to say that it means all, and no option is passed over: %s(%j)',
    async (method, given, option) => {
      const [id = ''] = await failed(1);
      const call = t.operator[method as 'purgeTerminalRuns'](...(given as never as [never]));
      await expect(call).rejects.toMatchObject(refused(option));
      expect(await stateOf(id)).toBe('failed');
    },
  );
});

describe('purgeTerminalRuns (R35)', () => {
  it('deletes what is old enough, in batches, and tells how far it is', async () => {
    const runs = await failed(5);
    const open = await t.client.submit(EchoFlow, 1);
    await t.sql(`update cyclone_runs set finished_at = finished_at - interval '2 h' where id = any($1)`, [
      runs.slice(0, 3),
    ]);
    expect(await t.operator.purgeTerminalRuns({ all: true, dryRun: false })).toBe(0); // no step says how long to keep it
    expect(await t.operator.purgeTerminalRuns({ olderThan: '1h', dryRun: true })).toBe(3);
    const progress: unknown[] = [];
    const onProgress = (now: unknown) => progress.push(now);
    expect(
      await t.operator.purgeTerminalRuns({ olderThan: '1h', limit: 2, dryRun: false, actor: 'ann', onProgress }),
    ).toBe(2);
    expect(progress).toEqual([{ runs: 2, steps: 2, blocked: [] }]);
    expect(await t.operator.purgeTerminalRuns({ defaultAge: '1h', dryRun: false })).toBe(1);
    expect(await t.operator.purgeTerminalRuns({ olderThan: 0, dryRun: false })).toBe(2);
    expect(await stateOf(open.id)).toBe('running');
    expect(await audit()).toMatchObject([{ actor: 'ann', action: 'purge', affected: 2, run_id: null }]);
  });

  it('leaves and names runs that a foreign key of the application holds', async () => {
    const [id = ''] = await failed(1);
    await t.sql('create table receipts (run_id bigint references cyclone_runs (id))');
    await t.sql('insert into receipts values ($1)', [id]);
    expect(await t.operator.purgeTerminalRuns({ olderThan: 0, dryRun: false })).toBe(0);
    expect(t.warnings).toEqual([expect.stringContaining(id)]);
    await t.sql('drop table receipts');
  });

  it.each([
    ['olderThan', { olderThan: '-5m' }],
    ['olderThan', { olderThan: -1 }],
    ['olderThan', { olderThan: 'now' }],
    ['olderThan', { olderThan: NaN }],
    ['defaultAge', { defaultAge: '5 minutes' }],
    ['limit', { limit: 0 }],
    ['limit', { limit: 1_000_000_000 }],
  ])('refuses a wrong %s: %j', async (option, options) => {
    await expect(t.operator.purgeTerminalRuns(options as never)).rejects.toMatchObject(refused(option));
    expect(t.calls).toEqual([]);
  });
});

describe('repairStrandedRuns (R24)', () => {
  /** A run whose first node is completed, though nobody told its dependents. */
  async function stranded(): Promise<string> {
    const run = await t.client.submit(Pay, { amount: 1 });
    await t.byHand(
      `update cyclone_steps set state = 'completed', output = '{"paid": 1}', finished_at = now() where run_id = $1 and node = 'charge'`,
      [run.id],
    );
    return run.id;
  }

  it('finds and mends all of them in batches, logs each, and wakes those who wait for work', async () => {
    const runs = [await stranded(), await stranded(), await stranded()];
    await t.client.submit(Pay, { amount: 1 });
    await t.sql('select cyclone_check_stranded(cyclone_now(), 10000)');
    expect((await t.operator.stats()).health.strandedRuns).toBe(3);
    const found: string[] = [];
    expect(await t.operator.repairStrandedRuns({ dryRun: true, onRun: ({ runId }) => found.push(runId) })).toBe(3);
    expect(found).toEqual(runs);
    t.reset();
    const stop = t.listen();
    expect(await t.operator.repairStrandedRuns({ batch: 2, actor: 'ann', all: true, dryRun: false })).toBe(3);
    stop();
    expect(t.warnings).toEqual(runs.map((id) => expect.stringContaining(`Repaired run ${id} (pay): `)));
    expect(t.events.filter(({ type }) => type === 'promoted')).toHaveLength(6);
    expect(new Set(t.woken)).toEqual(new Set(['default', 'mail']));
    expect(await audit()).toMatchObject(runs.map((id) => ({ actor: 'ann', action: 'repair', run_id: id })));
    const more = await stranded();
    await t.operator.repairStrandedRuns({ all: true, dryRun: false, reason: 'after the restore (F20)' });
    expect((await audit()).at(-1)).toMatchObject({
      actor: 'role cyclone_test_worker',
      run_id: more,
      reason: 'after the restore (F20)',
    });
    await t.client.run(more).cancel();
    expect(await t.operator.repairStrandedRuns({ all: true, dryRun: false })).toBe(0);
    await t.work(({ node }) => node);
    expect(await Promise.all(runs.map(stateOf))).toEqual(['completed', 'completed', 'completed']);
  });

  it('does not wait for a run that somebody else has locked, and says so', async () => {
    const [locked, free] = [await stranded(), await stranded()];
    const outcomes: string[] = [];
    await t.dataSource.transaction(async (tx) => {
      await tx.query('select 1 from cyclone_runs where id = $1 for update', [locked]);
      expect(
        await t.operator.repairStrandedRuns({
          all: true,
          dryRun: false,
          onRun: ({ outcome }) => outcomes.push(outcome),
        }),
      ).toBe(1);
    });
    expect(outcomes).toEqual(['busy', 'repaired']);
    expect(await t.operator.explain(free, 'last')).toMatchObject({ state: 'available' });
  });

  it.each([{ batch: 0 }, { batch: 1e9 }, { batch: '5' }])('refuses %j', async (options) => {
    await expect(t.operator.repairStrandedRuns(options as never)).rejects.toMatchObject(refused('batch'));
    expect(t.calls).toEqual([]);
  });
});

describe('looking at what there is', () => {
  it('explains nodes, and tells runs and nodes that do not exist', async () => {
    const run = await t.client.submit(Pay, { amount: 1 });
    const { reasons } = await t.operator.explain(run.id, 'last');
    expect(reasons).toMatchObject([{ code: 'dependencies', open: 1 }]);
    await expect(t.operator.explain(run.id, `x' or 1=1 --`)).rejects.toMatchObject({ code: 'CYCLONE_NODE_NOT_FOUND' });
    await expect(t.operator.explain('999999999999', 'last')).rejects.toMatchObject({ code: 'CYCLONE_RUN_NOT_FOUND' });
    await expect(t.operator.run('999999999999')).rejects.toMatchObject({ code: 'CYCLONE_RUN_NOT_FOUND' });
  });

  it('examines the database, the work and the workers', async () => {
    expect(await t.operator.workers()).toEqual([]);
    const findings = await t.operator.doctor();
    expect(findings.find(({ check }) => check === 'workers')).toMatchObject({
      level: 'warning',
      message: 'No worker is alive.',
    });
    expect(findings.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('pages the steps of a run, with payloads on demand', async () => {
    const run = await t.client.submit(Wide, 5);
    const first = await t.operator.stepsPage(run.id, { limit: 3 });
    expect(first.steps.map(({ node }) => node)).toEqual(['n0', 'n1', 'n2']);
    expect(first.steps[0]).not.toHaveProperty('input');
    const cursor = first.next ?? '';
    const rest = await t.operator.stepsPage(run.id, { limit: 3, cursor, payloads: true });
    expect(rest).toMatchObject({ steps: [{ node: 'n3', input: 3 }, { node: 'n4' }], next: null });
    await expect(t.operator.stepsPage(run.id, { cursor, states: ['available'] })).rejects.toMatchObject(
      refused('cursor'),
    );
    await expect(t.operator.stepsPage(run.id, { states: ['gone' as never] })).rejects.toMatchObject(refused('states'));
    expect(await t.operator.stepsPage(run.id, { states: ['paused'] })).toEqual({ steps: [], next: null });
    await expect(t.operator.stepsPage('999999999999')).rejects.toMatchObject({ code: 'CYCLONE_RUN_NOT_FOUND' });
  });
});
