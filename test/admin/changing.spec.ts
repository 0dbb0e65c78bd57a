import { WorkflowClient } from 'nestjs-cyclone';
import { AdminFixture, charging, type AdminApplication, type Answer } from './fixture.js';
import { violations, type OpenApiDocument } from './schema-check.js';

let fixture: AdminFixture;
let app: AdminApplication;
let document: OpenApiDocument;
beforeAll(async () => {
  fixture = await AdminFixture.create();
  app = await fixture.start();
  document = (await app.get('/openapi.json')).body as OpenApiDocument;
});
afterAll(() => fixture.end());

const stateOf = async (id: string) => (await app.get(`/runs/${id}`)).body.run.state as string;
const auditOf = (id: string) =>
  fixture.sql(
    'select actor, action, node, reason, affected::int, detail from cyclone_audit where run_id = $1 order by id',
    [id],
  );

/** That an answer is 200 and as the document describes it. */
function expectDone(answer: Answer, template: string): void {
  expect({ status: answer.status, body: answer.status === 200 ? undefined : answer.body }).toEqual({ status: 200 });
  const schema = document.paths[template]!['post']!.responses['200']!.content['application/json']!.schema;
  expect(violations(document, schema, answer.body)).toEqual([]);
}

/** That a mutation is refused, and leaves neither a change nor an audit row. */
async function expectRefused(path: string, body: unknown, status: number, code: string): Promise<void> {
  const snapshot = async () =>
    fixture.sql(`select (select json_agg(r order by id) from cyclone_runs r)::text as runs,
                        (select json_agg(s order by run_id, node) from cyclone_steps s)::text as steps,
                        (select count(*)::int from cyclone_audit) as audit`);
  const before = await snapshot();
  const answer = await app.post(path, body);
  expect({ path, status: answer.status, code: answer.body.code }).toEqual({ path, status, code });
  expect(answer.headers.get('content-type')).toContain('application/problem+json');
  expect(await snapshot()).toEqual(before);
}

describe('a change of one run', () => {
  it('is made with who, what, why and how many in the audit: pause, resume, cancel', async () => {
    const id = await app.later();
    const paused = await app.post(`/runs/${id}/pause`, { reason: 'the shop is closed' });
    expectDone(paused, '/runs/{id}/pause');
    expect(paused.body.run).toMatchObject({ id, state: 'paused' });
    const resumed = await app.post(`/runs/${id}/resume`, {}, { as: 'pauser' });
    expectDone(resumed, '/runs/{id}/resume');
    const cancelled = await app.post(`/runs/${id}/cancel`, { reason: `o'brien; --` });
    expectDone(cancelled, '/runs/{id}/cancel');
    expect(cancelled.body.run).toMatchObject({ state: 'cancelled', cancel_reason: `o'brien; --` });
    expect(await auditOf(id)).toEqual([
      {
        actor: 'admin@example.com',
        action: 'pause',
        node: null,
        reason: 'the shop is closed',
        affected: 1,
        detail: null,
      },
      { actor: 'pauser@example.com', action: 'resume', node: null, reason: null, affected: 1, detail: null },
      { actor: 'admin@example.com', action: 'cancel', node: null, reason: `o'brien; --`, affected: 3, detail: null },
    ]);
  });

  it('retries a node, and it completes without losing or repeating anything (R25)', async () => {
    const id = await app.order(7, 'failed');
    charging.failure = null;
    const answer = await app.post(`/runs/${id}/steps/charge/retry`, {
      reason: 'card replaced',
      additional_attempts: 2,
    });
    expectDone(answer, '/runs/{id}/steps/{node}/retry');
    expect(await app.end(id)).toBe('completed');
    expect(await auditOf(id)).toEqual([
      {
        actor: 'admin@example.com',
        action: 'retry',
        node: 'charge',
        reason: 'card replaced',
        affected: 2,
        detail: { additionalAttempts: 2 },
      },
    ]);
    const [attempts] = await fixture.sql('select count(*)::int as n from cyclone_attempts where run_id = $1', [id]);
    expect(attempts).toEqual({ n: 1 });
  });

  it('retries all nodes of a run', async () => {
    const id = await app.order(8, 'failed');
    charging.failure = null;
    expectDone(await app.post(`/runs/${id}/retry-all`), '/runs/{id}/retry-all');
    expect(await app.end(id)).toBe('completed');
    expect(await auditOf(id)).toMatchObject([{ action: 'retry_all', affected: 2 }]);
  });

  it('is refused with the code of the error when the run is not as it would have to be', async () => {
    const completed = await app.order();
    const failed = await app.order(1, 'failed');
    const running = await app.later();
    const none = '999999999999';
    await expectRefused(`/runs/${completed}/cancel`, {}, 409, 'CYCLONE_ALREADY_TERMINAL');
    await expectRefused(`/runs/${failed}/cancel`, {}, 409, 'CYCLONE_ALREADY_TERMINAL');
    await expectRefused(`/runs/${completed}/pause`, {}, 409, 'CYCLONE_ALREADY_TERMINAL');
    await expectRefused(`/runs/${running}/resume`, {}, 409, 'CYCLONE_NOT_PAUSED');
    await expectRefused(`/runs/${completed}/retry-all`, {}, 409, 'CYCLONE_NOT_RETRYABLE');
    await expectRefused(`/runs/${running}/retry-all`, {}, 409, 'CYCLONE_NOT_RETRYABLE');
    await expectRefused(`/runs/${failed}/steps/prepare/retry`, {}, 409, 'CYCLONE_NOT_RETRYABLE');
    await expectRefused(`/runs/${failed}/steps/nobody/retry`, {}, 404, 'CYCLONE_NODE_NOT_FOUND');
    await expectRefused(
      `/runs/${failed}/steps/${encodeURIComponent(`x'; --`)}/retry`,
      {},
      404,
      'CYCLONE_NODE_NOT_FOUND',
    );
    for (const action of ['cancel', 'pause', 'resume', 'retry-all', 'steps/a/retry']) {
      await expectRefused(`/runs/${none}/${action}`, {}, 404, 'CYCLONE_RUN_NOT_FOUND');
      await expectRefused(`/runs/9223372036854775808/${action}`, {}, 404, 'CYCLONE_RUN_NOT_FOUND');
      await expectRefused(`/runs/-1/${action}`, {}, 404, 'CYCLONE_RUN_NOT_FOUND');
      await expectRefused(`/runs/abc/${action}`, {}, 400, 'CYCLONE_INVALID_OPTION');
    }
    await app.post(`/runs/${running}/cancel`);
    await expectRefused(`/runs/${running}/cancel`, {}, 409, 'CYCLONE_ALREADY_TERMINAL');
  });

  it('names the run and the node of a refusal', async () => {
    const failed = await app.order(1, 'failed');
    const { body } = await app.post(`/runs/${failed}/steps/finish/retry`);
    expect(body).toMatchObject({ run_id: failed, node: 'finish', title: 'There is nothing to retry', status: 409 });
  });

  it.each([
    ['cancel', { reason: 7 }],
    ['cancel', { reason: null }],
    ['cancel', { reason: 'x'.repeat(501) }],
    ['cancel', { reasons: 'x' }],
    ['cancel', { additional_attempts: 1 }],
    ['cancel', [1]],
    ['cancel', '"text"'],
    ['cancel', '{"reason":'],
    ['pause', { dry_run: true }],
    ['retry-all', { additional_attempts: -1 }],
    ['retry-all', { additional_attempts: 1.5 }],
    ['retry-all', { additional_attempts: '1' }],
    ['retry-all', { additional_attempts: 1_000_001 }],
    ['retry-all', '{"__proto__":{"polluted":true}}'],
    ['retry-all', '{"constructor":{"prototype":{"polluted":true}}}'],
  ])('is refused for %s with a body that it does not take (%#)', async (action, body) => {
    const id = await app.later();
    const { status } = await app.post(`/runs/${id}/${action}`, body);
    expect(status).toBe(400);
    expect(await stateOf(id)).toBe('running');
    expect(await auditOf(id)).toEqual([]);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});

describe('dead letters', () => {
  it('reopens the runs behind them, each with its audit row; only counts unless dry_run is false (F3)', async () => {
    const ids = [await app.order('d1', 'failed'), await app.order('d2', 'failed')];
    const count = async () => (await app.get('/runs/count?state=failed')).body.count as number;
    const failed = await count();
    const filter = { kind: 'charge', error_kind: 'permanent', since: '1h' };
    const dry = await app.post('/dlq/retry', { ...filter, reason: 'just looking' });
    expectDone(dry, '/dlq/retry');
    expect(dry.body).toMatchObject({ reopened: failed, dry_run: true, stopped: false });
    expect(await count()).toBe(failed);

    charging.failure = null;
    const real = await app.post('/dlq/retry', {
      ...filter,
      limit: 2,
      dry_run: false,
      reason: 'provider is back',
      additional_attempts: 1,
    });
    expectDone(real, '/dlq/retry');
    expect(real.body).toEqual({ reopened: 2, skipped: 0, run_ids: ids.toReversed(), dry_run: false, stopped: false });
    for (const id of ids) {
      expect(await app.end(id)).toBe('completed');
      expect(await auditOf(id)).toMatchObject([
        {
          actor: 'admin@example.com',
          action: 'retry_all',
          reason: 'provider is back',
          affected: 2,
          detail: { bulk: 'retry_exhausted', filter: { kind: 'charge', reason: 'permanent' } },
        },
      ]);
    }
    expect((await app.post('/dlq/retry', { kind: 'nobody', dry_run: false })).body).toMatchObject({
      reopened: 0,
      run_ids: [],
    });
  });

  it.each([
    { error_kind: 'bad' },
    { limit: 0 },
    { limit: 1_000_000_000 },
    { since: 'x' },
    { kind: 7 },
    { dry_run: 'true' },
    { dry_run: null },
    { ids: ['1'] },
  ])('refuses %j', (body) => expectRefused('/dlq/retry', body, 400, 'CYCLONE_INVALID_REQUEST'));

  it('without any filter are only reopened when the request says that it means all (F3)', async () => {
    const id = await app.order('d3', 'failed');
    expect((await app.post('/dlq/retry', {})).body).toMatchObject({ dry_run: true });
    await expectRefused('/dlq/retry', { dry_run: false }, 400, 'CYCLONE_INVALID_OPTION');
    await expectRefused('/dlq/retry', { dry_run: false, all: false, limit: 5 }, 400, 'CYCLONE_INVALID_OPTION');
    expect(await stateOf(id)).toBe('failed');
    charging.failure = null;
    const real = await app.post('/dlq/retry', { dry_run: false, all: true, limit: 1 });
    expectDone(real, '/dlq/retry');
    expect(real.body).toMatchObject({ reopened: 1, run_ids: [id] });
    expect(await app.end(id)).toBe('completed');
  });
});

describe('stranded runs', () => {
  it('are found, shown without a change, and mended with an audit row (R24)', async () => {
    const id = await app.later();
    // What an update by hand does: the steps are over, and nobody told the run.
    await fixture.sql(`update cyclone_steps set state = 'completed', output = '{}' where run_id = $1`, [id]);
    const found = (await app.get('/health/stranded')).body.data;
    expect(found).toEqual([{ run_id: id, workflow: 'order', stranded: true, problems: expect.any(Array) }]);

    const dry = await app.post('/health/stranded/repair', {});
    expectDone(dry, '/health/stranded/repair');
    expect(dry.body).toMatchObject({ repaired: 1, runs: [{ run_id: id, outcome: 'found' }], dry_run: true });
    expect(await stateOf(id)).toBe('running');

    await expectRefused('/health/stranded/repair', { dry_run: false }, 400, 'CYCLONE_INVALID_OPTION');
    const real = await app.post('/health/stranded/repair', { dry_run: false, all: true, reason: 'manual update' });
    expectDone(real, '/health/stranded/repair');
    expect(real.body).toMatchObject({ repaired: 1, runs: [{ run_id: id, outcome: 'repaired' }], stopped: false });
    expect(await stateOf(id)).toBe('completed');
    expect(await auditOf(id)).toMatchObject([
      { actor: 'admin@example.com', action: 'repair', reason: 'manual update' },
    ]);
    expect((await app.get('/health/stranded')).body.data).toEqual([]);
  });

  it.each([{ batch: 0 }, { batch: 10_001 }, { batch: '5' }, { run_id: '1' }, { dry_run: 1 }])('refuses %j', (body) =>
    expectRefused('/health/stranded/repair', body, 400, 'CYCLONE_INVALID_REQUEST'),
  );
});

describe('a purge', () => {
  it('only counts unless dry_run is false, and writes how many it deleted into the audit (R35)', async () => {
    const old = await app.order('old');
    const young = await app.order('young');
    await fixture.sql(`update cyclone_runs set finished_at = finished_at - interval '40 days' where id = $1`, [old]);
    const dry = await app.post('/purge', { older_than: '30d' });
    expectDone(dry, '/purge');
    expect(dry.body).toEqual({ runs: 1, steps: 3, blocked: [], dry_run: true, stopped: false });
    expect(await stateOf(old)).toBe('completed');

    const real = await app.post('/purge', { older_than: '30d', dry_run: false, reason: 'monthly' });
    expectDone(real, '/purge');
    expect(real.body).toEqual({ runs: 1, steps: 3, blocked: [], dry_run: false, stopped: false });
    expect((await app.get(`/runs/${old}`)).status).toBe(404);
    expect(await stateOf(young)).toBe('completed');
    expect(await fixture.sql(`select actor, reason, affected::int from cyclone_audit where action = 'purge'`)).toEqual([
      { actor: 'admin@example.com', reason: 'monthly', affected: 1 },
    ]);
  });

  it.each([
    [{}, 'CYCLONE_INVALID_REQUEST'],
    [{ older_than: 0 }, 'CYCLONE_INVALID_OPTION'],
    [{ older_than: '0s' }, 'CYCLONE_INVALID_OPTION'],
    [{ older_than: -1 }, 'CYCLONE_INVALID_REQUEST'],
    [{ older_than: '-1d' }, 'CYCLONE_INVALID_REQUEST'],
    [{ older_than: 'tomorrow' }, 'CYCLONE_INVALID_REQUEST'],
    [{ older_than: null }, 'CYCLONE_INVALID_REQUEST'],
    [{ older_than: '30d', limit: 0 }, 'CYCLONE_INVALID_REQUEST'],
    [{ older_than: '30d', states: ['running'] }, 'CYCLONE_INVALID_REQUEST'],
  ])('of %j is refused', (body, code) => expectRefused('/purge', { dry_run: false, ...body }, 400, code));
});

describe('operators at the same time', () => {
  it('cancel a run once: one succeeds, the others are told (R24)', async () => {
    const id = await app.later();
    const answers = await Promise.all(Array.from({ length: 6 }, () => app.post(`/runs/${id}/cancel`)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409, 409, 409]);
    expect(await auditOf(id)).toHaveLength(1);
  });

  it('are all of them known to those who wait for a run', async () => {
    const id = await app.later();
    const end = app.app.get(WorkflowClient).run(id).wait({ timeout: '20s' });
    await app.post(`/runs/${id}/cancel`);
    expect(await end).toBe('cancelled');
  });
});
