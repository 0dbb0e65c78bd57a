import { WorkflowClient, Workflow, lit, type WorkflowBuilder, type WorkflowDefinition } from 'nestjs-cyclone';
import { AdminFixture, Order, charging, steps, type AdminApplication } from './fixture.js';
import { violations, type OpenApiDocument } from './schema-check.js';

/** Node names with all that a path can trip over. */
const STRANGE = [
  'a/b',
  'a b',
  '100%',
  '?x=1&y#z',
  `o'brien"; drop table cyclone_runs; --`,
  '日本語🎉',
  '%2F',
  'a+b',
  '..%2f',
  'x'.repeat(500),
];

@Workflow({ name: 'strange' })
class Strange implements WorkflowDefinition<null, void> {
  define(b: WorkflowBuilder): void {
    for (const node of STRANGE) b.step(steps.prepare, lit({ value: node }), { node });
  }
}

let fixture: AdminFixture;
let app: AdminApplication;
let document: OpenApiDocument;
let completed: string;
let failed: string;
let waiting: string;
beforeAll(async () => {
  fixture = await AdminFixture.create();
  app = await fixture.start({ providers: [Strange] });
  document = (await app.get('/openapi.json')).body as OpenApiDocument;
  completed = await app.order(1);
  failed = await app.order(2, 'failed');
  waiting = await app.later(3);
});
afterAll(() => fixture.end());

/** Every page of a list; `between` happens after each. */
async function pages(path: string, between: (page: number) => Promise<void> = async () => undefined) {
  const rows = [];
  let cursor: string | null = '';
  for (let page = 0; cursor !== null; page++) {
    if (page > 100) throw new Error('The pages do not end.');
    const { status, body } = await app.get(`${path}${cursor && `&cursor=${cursor}`}`);
    expect(status).toBe(200);
    rows.push(...body.data);
    cursor = body.next_cursor;
    await between(page);
  }
  return rows;
}

describe('every answer', () => {
  it('is what openapi.json says, and is not kept by anybody on the way', async () => {
    const places = { '{id}': [completed, failed, waiting], '{node}': ['charge'] };
    for (const [template, { get }] of Object.entries(document.paths)) {
      if (!get) continue;
      for (const id of places['{id}']) {
        const path = template.replace('{id}', id).replace('{node}', 'charge');
        const { status, body, headers } = await app.get(path);
        expect({ path, status, body: status === 200 ? undefined : body }).toEqual({ path, status: 200 });
        expect(headers.get('cache-control')).toBe('no-store');
        expect(headers.get('content-type')).toContain('application/json');
        const schema = get.responses['200']!.content['application/json']!.schema;
        expect({ path, violations: violations(document, schema, body) }).toEqual({ path, violations: [] });
        if (!template.includes('{id}')) break;
      }
    }
  });

  it('of a refusal is a problem as described (RFC 9457)', async () => {
    for (const path of ['/runs/999999999999', '/runs/abc', '/runs?limit=0', `/runs/${completed}/steps/nobody`]) {
      const { status, body, headers } = await app.get(path);
      expect(headers.get('content-type')).toContain('application/problem+json');
      expect(headers.get('cache-control')).toBe('no-store');
      expect(violations(document, document.components.schemas['Problem']!, body)).toEqual([]);
      expect(body.status).toBe(status);
    }
  });
});

describe('a run', () => {
  it('says what failed it', async () => {
    expect((await app.get(`/runs/${failed}`)).body).toEqual({
      run: expect.objectContaining({ id: failed, workflow: 'order', state: 'failed' }),
      failure: { node: 'charge', kind: 'charge', error: expect.stringContaining('declined'), error_kind: 'permanent' },
    });
    expect((await app.get(`/runs/${completed}`)).body).toMatchObject({ run: { state: 'completed' }, failure: null });
  });

  it('has ids as strings, exactly, however large (S62)', async () => {
    const large = '9007199254740993';
    const run = await app.later();
    for (const table of ['steps', 'deps']) {
      await fixture.sql(`update cyclone_${table} set run_id = $1 where run_id = $2`, [large, run]);
    }
    await fixture.sql('update cyclone_runs set id = $1 where id = $2', [large, run]);
    expect((await app.get(`/runs/${large}`)).body.run.id).toBe(large);
    expect((await app.get('/runs?limit=1')).body.data[0].id).toBe(large);
    expect((await app.get(`/runs/${large}/steps`)).body.data[0].run_id).toBe(large);
    expect((await app.get(`/runs/${large}/steps/charge/explain`)).body.run_id).toBe(large);
    const cancelled = await app.post(`/runs/${large}/cancel`);
    expect(cancelled.body.run).toMatchObject({ id: large, state: 'cancelled' });
    expect((await app.get(`/audit?run_id=${large}`)).body.data).toMatchObject([{ run_id: large, action: 'cancel' }]);
    await fixture.sql('delete from cyclone_steps where run_id = $1', [large]);
    await fixture.sql('delete from cyclone_deps where run_id = $1', [large]);
    await fixture.sql('delete from cyclone_runs where id = $1', [large]);
  });

  it('has steps without payloads, attempts and an explanation', async () => {
    const { body } = await app.get(`/runs/${failed}/steps`);
    expect(body.data.map(({ node, state }: { node: string; state: string }) => [node, state])).toEqual([
      ['charge', 'discarded'],
      ['finish', 'cancelled'],
      ['prepare', 'completed'],
    ]);
    expect(body.data[0]).not.toHaveProperty('input');
    expect((await app.get(`/runs/${failed}/steps/charge`)).body).toEqual(body.data[0]);
    expect((await app.get(`/runs/${failed}/steps/charge/attempts`)).body.data).toMatchObject([
      { run_id: failed, node: 'charge', outcome: 'discarded', error: 'declined', error_kind: 'permanent' },
    ]);
    expect((await app.get(`/runs/${failed}/steps/finish/explain`)).body.reasons[0]).toMatchObject({
      code: 'cancelled',
      text: expect.stringContaining('cancelled'),
    });
    expect((await app.get(`/runs/${waiting}/steps/prepare/explain`)).body.reasons[0].code).toBe('scheduled');
  });

  it('has steps that are found by name, whatever the name is', async () => {
    const run = await app.app.get(WorkflowClient).submit(Strange, null, { delay: '1h' });
    const { body } = await app.get(`/runs/${run.id}/steps?limit=200`);
    expect(body.data.map(({ node }: { node: string }) => node).toSorted()).toEqual(STRANGE.toSorted());
    for (const node of STRANGE) {
      const path = `/runs/${run.id}/steps/${encodeURIComponent(node)}`;
      expect((await app.get(path)).body).toMatchObject({ node });
      expect((await app.get(`${path}/explain`)).body).toMatchObject({ node });
      expect((await app.get(`${path}/payload`)).body).toMatchObject({ node, input: { value: { value: node } } });
      expect((await app.get(`${path}/attempts`)).body).toEqual({ data: [] });
      expect((await app.post(`${path}/retry`)).body).toMatchObject({ status: 409, node });
    }
    await app.post(`/runs/${run.id}/cancel`);
  });
});

describe('a list', () => {
  it('filters runs by state, workflow, key, tag and time, all at once too', async () => {
    const client = app.app.get(WorkflowClient);
    const tags = { tenant: 'a:b', tier: 'gold' };
    const { id: tagged } = await client.submitOnce(Order, 'k 1', { value: 9 }, { delay: '1h', tags });
    const ids = async (query: string) => (await pages(`/runs?${query}`)).map(({ id }) => id);
    expect(await ids('state=failed')).toEqual([failed]);
    expect(await ids('state=failed&state=completed&workflow=order')).toEqual([failed, completed]);
    expect(await ids('key=k+1')).toEqual([tagged]);
    expect(await ids('tag=tenant:a:b&tag=tier:gold&state=running')).toEqual([tagged]);
    expect(await ids('tag=tenant:a')).toEqual([]);
    expect(await ids('workflow=nobody')).toEqual([]);
    expect(await ids('parent=1')).toEqual([]);
    const { created_at } = (await app.get(`/runs/${tagged}`)).body.run;
    expect(await ids(`created_from=${created_at}&workflow=order`)).toEqual([tagged]);
    expect(await ids(`created_to=${created_at}&state=completed`)).toEqual([completed]);
    expect(await ids(`direction=asc&state=completed&state=failed`)).toEqual([completed, failed]);
    expect((await app.get('/runs/count?state=failed')).body).toEqual({ count: 1, capped: false });
    expect((await app.get('/runs/count?tag=tier:gold')).body).toEqual({ count: 1, capped: false });
  });

  it('shows each run once while others of the same moment are inserted, forwards and backwards (S31)', async () => {
    const client = app.app.get(WorkflowClient);
    const before: string[] = [];
    for (let i = 0; i < 20; i++) {
      before.push((await client.submit(Order, { value: i }, { delay: '1h', tags: { page: 'stable' } })).id);
    }
    const inOneMoment = () =>
      fixture.sql(`update cyclone_runs set created_at = '2031-01-01T00:00:00Z' where tags ->> 'page' = 'stable'`);
    await inOneMoment();
    const seen = await pages('/runs?tag=page:stable&limit=3', async () => {
      await client.submit(Order, { value: 0 }, { delay: '1h', tags: { page: 'stable' } });
      await inOneMoment();
    });
    expect(seen.map(({ id }) => id)).toEqual(before.toReversed());

    const third = (await app.get('/runs?tag=page:stable&limit=3')).body;
    const second = (await app.get(`/runs?tag=page:stable&limit=3&cursor=${third.next_cursor}`)).body;
    const back = (await app.get(`/runs?tag=page:stable&limit=3&cursor=${second.previous_cursor}`)).body;
    expect(back.data).toEqual(third.data);
  });

  it('pages through steps, dead letters and the audit', async () => {
    charging.failure = 'declined again';
    const client = app.app.get(WorkflowClient);
    for (let i = 0; i < 5; i++) await app.order(i, 'failed');
    const dead = await pages('/dlq/steps?limit=2');
    expect(dead.length).toBeGreaterThanOrEqual(6);
    expect(new Set(dead.map(({ run_id }) => run_id)).size).toBe(dead.length);
    expect(dead.map(({ discarded_at }) => discarded_at)).toEqual(
      dead
        .map(({ discarded_at }) => discarded_at)
        .toSorted()
        .toReversed(),
    );
    expect(await pages('/dlq/steps?kind=charge&error_kind=permanent&since=1h&limit=200')).toEqual(dead);
    expect(await pages('/dlq/steps?kind=prepare&')).toEqual([]);
    expect(await pages('/dlq/steps?error_kind=retryable&')).toEqual([]);
    const { body } = await app.get('/dlq/groups');
    expect(body.data.map(({ kind, steps: n }: { kind: string; steps: number }) => [kind, n])).toEqual([
      ['charge', dead.length],
    ]);
    expect(await pages(`/dlq/steps?fingerprint=${body.data[0].fingerprint}&`)).toHaveLength(dead.length);

    const { id } = await client.submit(Order, { value: 0 }, { delay: '1h' });
    for (const action of ['pause', 'resume', 'pause', 'resume', 'cancel']) await app.post(`/runs/${id}/${action}`);
    const audit = await pages(`/audit?run_id=${id}&limit=2`);
    expect(audit.map(({ action }) => action)).toEqual(['cancel', 'resume', 'pause', 'resume', 'pause']);
    expect(await pages(`/audit?run_id=${id}&action=cancel&actor=admin@example.com`)).toEqual([audit[0]]);
    const cancelled = await pages(`/runs/${id}/steps?limit=1&state=cancelled`);
    expect(cancelled.map(({ node }) => node)).toEqual(['charge', 'finish', 'prepare']);
  });

  it('knows workers, kinds, what is wrong, and what stands where', async () => {
    const { data: workers } = (await app.get('/workers')).body;
    expect(workers).toMatchObject([{ kinds: expect.arrayContaining(['charge', 'prepare']), status: 'idle' }]);
    const { data: kinds } = (await app.get('/kinds')).body;
    expect(kinds.map(({ kind, live_workers }: { kind: string; live_workers: number }) => [kind, live_workers])).toEqual(
      [
        ['charge', 1],
        ['prepare', 1],
      ],
    );
    expect((await app.get('/stats')).body).toMatchObject({
      runs: { completed: { capped: false } },
      workers: { live: 1 },
      health: { stranded_runs: 0 },
    });
    const { data: findings } = (await app.get('/doctor')).body;
    expect(findings.length).toBeGreaterThan(3);
    expect(findings.filter(({ level }: { level: string }) => level === 'error')).toEqual([]);
    expect((await app.get('/health/stranded')).body).toEqual({ data: [], next_cursor: null });
    expect((await app.get('/meta', { as: 'reader' })).body).toMatchObject({
      schema: 'public',
      read_only: false,
      actor: 'reader@example.com',
      permissions: ['read', 'audit:read'],
    });
  });
});

describe('bad input', () => {
  it.each([
    ['/runs/abc', 400],
    ['/runs/-1', 404],
    ['/runs/0', 404],
    ['/runs/1.5', 400],
    ['/runs/1e3', 400],
    ['/runs/999999999999', 404],
    ['/runs/9223372036854775807', 404],
    ['/runs/9223372036854775808', 404],
    ['/runs/%27%20OR%201=1--', 400],
    ['/runs/999999999999/steps', 404],
    ['/runs/999999999999/steps/a', 404],
    ['/runs/999999999999/steps/a/attempts', 404],
    ['/runs/999999999999/steps/a/payload', 404],
    ['/runs/999999999999/steps/a/explain', 404],
    ['/runs/abc/steps/a/explain', 400],
    ['/runs?limit=0', 400],
    ['/runs?limit=201', 400],
    ['/runs?limit=1000000000', 400],
    ['/runs?limit=-1', 400],
    ['/runs?limit=1.5', 400],
    ['/runs?limit=x', 400],
    ['/runs?limit=', 400],
    ['/runs?limit=5&limit=6', 400],
    ['/runs?state=broken', 400],
    ['/runs?state=failed%27--', 400],
    ['/runs?direction=sideways', 400],
    ['/runs?parent=abc', 400],
    ['/runs?parent=9223372036854775808', 400],
    ['/runs?tag=no-colon', 400],
    ['/runs?tag=:x', 400],
    ['/runs?key=%00', 400],
    ['/runs?workflow=%00', 400],
    [`/runs?key=${'x'.repeat(1_025)}`, 400],
    ['/runs?created_from=yesterday', 400],
    ['/runs?created_from=2026-02-30T00:00:00Z', 400],
    ['/runs?created_from=2026-01-01T00:00:00', 400],
    ['/runs?created_to=0000-01-01T00:00:00Z', 400],
    ['/runs?created_to=2026-01-01T00:00:00%2B99:00', 400],
    ['/runs?offset=10', 400],
    ['/runs?__proto__=x', 400],
    ['/runs?constructor=x', 400],
    ['/runs/count?limit=5', 400],
    ['/runs?cursor=', 400],
    ['/runs?cursor=abc', 400],
    ['/runs?cursor=bnVsbA', 400],
    ['/meta?x=1', 400],
    ['/dlq/steps?error_kind=bad', 400],
    ['/dlq/steps?since=yesterday', 400],
    ['/dlq/steps?since=-1h', 400],
    ['/dlq/groups?since=1y', 400],
    ['/audit?run_id=abc', 400],
    ['/health/stranded?cursor=WyJ4IiwwLCIxIl0', 400],
    ['/health/stranded?limit=0', 400],
  ])('GET %s is answered with %i', async (path, expected) => {
    const { status, body } = await app.get(path);
    expect({ status, body }).toEqual({
      status: expected,
      body: expect.objectContaining({
        status: expected,
        code: expect.stringMatching(/^CYCLONE_/),
        detail: expect.any(String),
      }),
    });
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });

  it('knows nobody by a name that Postgres cannot hold', async () => {
    expect((await app.get(`/runs/${completed}/steps/${encodeURIComponent('a\u0000b')}`)).status).toBe(404);
  });

  it.each(['0000-01-01T00:00:00.000000Z', '2026-02-30T00:00:00Z', 'infinity', '\u0000'])(
    'refuses a forged cursor that says %j (F28)',
    async (at) => {
      await app.order('forged', 'failed');
      const { next_cursor } = (await app.get('/dlq/steps?limit=1')).body;
      const [scope] = JSON.parse(Buffer.from(next_cursor, 'base64url').toString());
      const forged = Buffer.from(JSON.stringify([scope, 0, at, '1', 'a'])).toString('base64url');
      const { status, body } = await app.get(`/dlq/steps?limit=1&cursor=${forged}`);
      expect({ status, code: body.code }).toEqual({ status: 400, code: 'CYCLONE_INVALID_OPTION' });
    },
  );

  it('refuses the cursor of another filter, direction or list, and takes it with another limit', async () => {
    const cursor = (await app.get('/runs?limit=1&state=completed&state=failed')).body.next_cursor as string;
    expect((await app.get(`/runs?limit=2&state=completed&state=failed&cursor=${cursor}`)).status).toBe(200);
    for (const path of [
      '/runs?state=completed',
      '/runs?',
      '/runs?state=completed&state=failed&direction=asc',
      '/runs?state=completed&state=failed&workflow=order',
      `/runs/${completed}/steps?`,
      '/dlq/steps?',
      '/audit?',
      '/health/stranded?',
    ]) {
      const { status, body } = await app.get(`${path}&cursor=${cursor}`);
      expect({ path, status, code: body.code }).toEqual({ path, status: 400, code: 'CYCLONE_INVALID_OPTION' });
    }
  });

  it('never reads a filter as SQL (S81)', async () => {
    for (const sql of [`x' OR 1=1--`, `'; drop table cyclone_runs; --`, '$1', '%', '_', `\\'`, 'a"b', '$$', '*']) {
      const text = encodeURIComponent(sql);
      for (const path of [
        `/runs?workflow=${text}`,
        `/runs?key=${text}`,
        `/runs?tag=a:${text}`,
        `/runs?tag=${text}:a`,
        `/dlq/steps?kind=${text}`,
        `/dlq/steps?fingerprint=${text}`,
        `/dlq/groups?kind=${text}`,
        `/audit?actor=${text}`,
        `/audit?action=${text}`,
        `/runs/${completed}/steps?parent_node=${text}`,
      ]) {
        const { status, body } = await app.get(path);
        expect({ path, status, rows: body.data }).toEqual({ path, status: 200, rows: [] });
      }
      expect((await app.get(`/runs/count?workflow=${text}`)).body).toEqual({ count: 0, capped: false });
    }
    expect((await app.get(`/runs/${completed}`)).status).toBe(200);
  });
});
