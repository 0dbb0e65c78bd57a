// oxlint-disable typescript/no-explicit-any -- the bodies of answers are compared, not used
import { jest } from '@jest/globals';
import 'reflect-metadata';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PermanentError, WorkflowClient } from 'nestjs-cyclone';
import { DataSource } from 'typeorm';
import { AppModule } from '../../apps/sample/src/app.module.js';
import { MailServer } from '../../apps/sample/src/orders/mail-server.js';
import { Settings } from '../../apps/sample/src/settings.js';
import { createDatabase, type TestDatabase } from '../support/postgres.js';

const settings = new Settings({ cardLatency: 1, adminToken: 'open sesame' });
const LINES = [
  { productId: '11', unitPrice: '14.00', quantity: 12, discount: '0.05' },
  { productId: '42', unitPrice: '9.8', quantity: 10 },
];

let database: TestDatabase;
let app: INestApplication;
let url: string;

beforeAll(async () => {
  database = await createDatabase();
  settings.databaseUrl = database.url;
  app = await NestFactory.create(AppModule.forRoot(settings), { logger: ['error', 'fatal'], abortOnError: false });
  await app.listen(0, '127.0.0.1');
  url = await app.getUrl();
});
afterAll(async () => {
  await app?.close();
  await database?.drop();
});

interface Placed {
  id: string;
  runId: string;
  created: boolean;
}

function post(body: unknown): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return fetch(`${url}/orders`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: text });
}

async function place(id: string, lines: object[] = LINES): Promise<Placed> {
  const response = await post({ id, email: 'ann@example.com', lines });
  expect(response.status).toBe(202);
  return (await response.json()) as Placed;
}

async function json(path: string, headers: Record<string, string> = {}): Promise<{ status: number; body: any }> {
  const response = await fetch(url + path, { headers });
  return { status: response.status, body: await response.json() };
}

const end = (runId: string) => app.get(WorkflowClient).run(runId).wait({ timeout: '20s' });
const query = (sql: string, values: unknown[] = []) => app.get(DataSource).query(sql, values);

describe('POST /orders', () => {
  it('accepts an order, which is charged, taken from stock and confirmed by mail, each exactly once', async () => {
    const placed = await place('A-1');
    expect(placed).toEqual({ id: 'A-1', runId: expect.stringMatching(/^\d+$/), created: true });
    expect(await end(placed.runId)).toBe('completed');

    const { status, body } = await json('/orders/A-1');
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: 'A-1', runId: placed.runId, state: 'completed', failure: null });
    expect(body.ledger).toEqual([{ node: 'charge', amount: '257.6', chargedAt: expect.any(String) }]);
    expect(body.stock).toEqual([
      { line: 1, productId: '11', quantity: 12 },
      { line: 2, productId: '42', quantity: 10 },
    ]);
    expect(await query(`SELECT idempotency_key, recipient FROM outbox WHERE subject LIKE '%A-1'`)).toEqual([
      { idempotency_key: `${placed.runId}:sendReceipt`, recipient: 'ann@example.com' },
    ]);
  });

  it('charges exact decimals, where floats would not', async () => {
    const lines = [
      { productId: '1', unitPrice: '0.1', quantity: 1 },
      { productId: '2', unitPrice: '0.2', quantity: 1 },
      { productId: '3', unitPrice: '9999999999.9999', quantity: 1, discount: '0.9999' },
    ];
    const { runId } = await place('A-exact', lines);
    await end(runId);
    expect(await query('SELECT amount FROM ledger WHERE order_id = $1', ['A-exact'])).toEqual([
      { amount: '1000000.29999999' },
    ]);
  });

  it('makes one run of an order that is sent several times (R7)', async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => place('A-2')));
    answers.push(await place('A-2'));
    expect(new Set(answers.map(({ runId }) => runId)).size).toBe(1);
    expect(answers.filter(({ created }) => created)).toHaveLength(1);
    await end(answers[0]!.runId);
    expect((await json('/orders/A-2')).body.ledger).toHaveLength(1);
    expect(await query(`SELECT count(*)::int AS runs FROM cyclone_v_runs WHERE once_key = 'A-2'`)).toEqual([
      { runs: 1 },
    ]);
  });

  it('shows why an order failed that no retry can save, and charges nothing', async () => {
    const { runId } = await place('A-3', [{ productId: '1', unitPrice: '1000', quantity: 1_000_000 }]);
    expect(await end(runId)).toBe('failed');
    const { body } = await json('/orders/A-3');
    expect(body).toMatchObject({ state: 'failed', ledger: [], stock: [] });
    expect(body.failure).toContain('above the limit');
  });

  it.each([
    ['no body', {}, ['id must be', 'email must be', 'lines']],
    ['a broken id', { id: 'a b', email: 'ann@example.com', lines: LINES }, ['id must be 1 to 64 letters']],
    ['no e-mail address', { id: 'B-1', email: 'ann', lines: LINES }, ['email must be an email']],
    ['no lines', { id: 'B-1', email: 'ann@example.com', lines: [] }, ['lines should not be empty']],
    ['lines that are no list', { id: 'B-1', email: 'ann@example.com', lines: 'x' }, ['lines must be an array']],
    [
      'a price that is a JSON number, so a float',
      { id: 'B-1', email: 'ann@example.com', lines: [{ productId: '1', unitPrice: 9.8, quantity: 1 }] },
      ['lines.0.unitPrice must be a decimal number as text'],
    ],
    [
      'a line in which everything is wrong',
      { id: 'B-1', email: 'ann@example.com', lines: [{ unitPrice: '-1', quantity: 1.5, discount: '2' }] },
      [
        'lines.0.productId',
        'lines.0.unitPrice',
        'lines.0.quantity must be a whole number from 1 to 1000000',
        'lines.0.discount',
      ],
    ],
    ['text that is no JSON', '{"id":', ['JSON']],
  ])('refuses %s with 400 and the reasons', async (_, body, reasons) => {
    const response = await post(body);
    expect(response.status).toBe(400);
    const text = JSON.stringify(await response.json());
    for (const reason of reasons) expect(text).toContain(reason);
    expect((await json('/orders/B-1')).status).toBe(404);
  });

  it('drops what it does not know', async () => {
    const response = await post({ id: 'A-4', email: 'ann@example.com', lines: LINES, total: '0.01' });
    const { runId } = (await response.json()) as Placed;
    await end(runId);
    const [step] = await query(`SELECT input FROM cyclone_v_steps WHERE run_id = $1 AND node = 'validate'`, [runId]);
    expect(Object.keys(step.input).toSorted()).toEqual(['email', 'id', 'lines']);
  });
});

describe('GET /orders/:id', () => {
  it('answers with an order whose run has been purged', async () => {
    const placed = await place('A-5');
    await end(placed.runId);
    await query('SELECT cyclone_delete_runs(ARRAY[$1::bigint])', [placed.runId]);
    const { status, body } = await json('/orders/A-5');
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: 'A-5', runId: placed.runId, state: 'purged', failure: null });
    expect(body.ledger).toHaveLength(1);
    const again = await post({ id: 'A-5', email: 'ann@example.com', lines: LINES });
    expect(await again.json()).toMatchObject({ runId: placed.runId, created: false });
  });

  it('answers 404 for an order that nobody placed', async () => {
    expect(await json('/orders/nobody')).toMatchObject({ status: 404, body: { message: 'There is no order nobody.' } });
  });
});

describe('GET /orders/:id/payment (F37)', () => {
  it('waits for the payment', async () => {
    await place('D-1');
    const { status, body } = await json('/orders/D-1/payment');
    expect([status, body]).toEqual([200, { orderId: 'D-1', amount: '257.6', authorization: expect.any(String) }]);
  });

  it('answers 404 for an order whose run is unknown, because it was purged, and for one that nobody placed', async () => {
    const { runId } = await place('D-2');
    await end(runId);
    await query('SELECT cyclone_delete_runs(ARRAY[$1::bigint])', [runId]);
    expect(await json('/orders/D-2/payment')).toEqual({
      status: 404,
      body: { statusCode: 404, code: 'CYCLONE_RUN_NOT_FOUND', message: 'There is no such run', runId },
    });
    expect(await json('/orders/nobody/payment')).toMatchObject({
      status: 404,
      body: { message: 'There is no order nobody.' },
    });
  });

  it('answers 409 for an order that has failed, and tells nothing of the inside', async () => {
    const { runId } = await place('D-3', [{ productId: '1', unitPrice: '1000', quantity: 1_000_000 }]);
    expect(await json('/orders/D-3/payment')).toEqual({
      status: 409,
      body: { statusCode: 409, code: 'CYCLONE_RUN_FAILED', message: 'The run has failed', runId },
    });
  });
});

describe('the admin API', () => {
  const BASE = '/admin/api/v1';
  const authorization = 'Bearer open sesame';
  const admin = (path: string) => json(`${BASE}${path}`, { authorization });
  const change = async (path: string, body: object, headers: Record<string, string> = { authorization }) => {
    const response = await fetch(url + BASE + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-cyclone-admin': '1', ...headers },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as any };
  };

  it('is closed without the token, whatever is asked', async () => {
    const wrong = ['', 'Bearer', 'Bearer open', 'Bearer open sesame!', 'Basic open sesame', 'open sesame'];
    for (const path of ['/runs', '/runs/1', '/runs/1/steps', '/runs?limit=x', '/meta', '/openapi.json']) {
      for (const it of wrong) expect((await json(BASE + path, { authorization: it })).status).toBe(401);
    }
    for (const it of wrong) expect((await change('/runs/1/cancel', {}, { authorization: it })).status).toBe(401);
  });

  it('is closed to everybody when no token is set', async () => {
    settings.adminToken = undefined;
    try {
      for (const it of ['', 'Bearer ', 'Bearer undefined', 'Bearer open sesame']) {
        expect((await json(`${BASE}/runs`, { authorization: it })).status).toBe(403);
        expect((await change('/purge', { older_than: '1d' }, { authorization: it })).status).toBe(403);
      }
    } finally {
      settings.adminToken = 'open sesame';
    }
  });

  it('shows the newest orders first, page by page, and one with its steps', async () => {
    const placed: Placed[] = [];
    for (const id of ['C-1', 'C-2', 'C-3']) placed.push(await place(id));
    await Promise.all(placed.map(({ runId }) => end(runId)));

    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const { status, body } = await admin(`/runs?limit=2${cursor && `&cursor=${cursor}`}`);
      expect(status).toBe(200);
      seen.push(...body.data.map(({ id }: { id: string }) => id));
      cursor = body.next_cursor;
    }
    const all: { id: string }[] = await query('SELECT id FROM cyclone_v_runs ORDER BY id DESC');
    expect(seen).toEqual(all.map(({ id }) => id));

    const { runId } = placed[0]!;
    expect((await admin(`/runs?key=C-1&workflow=place_order`)).body.data).toMatchObject([
      { id: runId, once_key: 'C-1' },
    ]);
    const { body } = await admin(`/runs/${runId}/steps`);
    expect(body.data.map(({ node, state }: { node: string; state: string }) => [node, state])).toEqual([
      ['charge', 'completed'],
      ['sendReceipt', 'completed'],
      ['takeFromStock', 'completed'],
      ['validate', 'completed'],
    ]);
    expect((await admin(`/runs/${runId}/steps/charge/payload`)).body.output.value).toMatchObject({
      orderId: 'C-1',
      amount: '257.6',
    });
  });

  it('brings a failed order back to completed, and remembers who did it', async () => {
    const receipts = app.get(MailServer);
    const refuse = jest.spyOn(receipts, 'send').mockRejectedValue(new PermanentError('mailbox unavailable'));
    const { runId } = await place('C-5');
    expect(await end(runId)).toBe('failed');
    const { body: groups } = await admin('/dlq/groups');
    expect(groups.data).toContainEqual(
      expect.objectContaining({ kind: 'sendReceipt', error_kind: 'permanent', steps: 1 }),
    );
    expect((await admin(`/runs/${runId}`)).body.failure).toMatchObject({
      node: 'sendReceipt',
      error: 'mailbox unavailable',
    });

    refuse.mockRestore();
    const { status } = await change(`/runs/${runId}/steps/sendReceipt/retry`, { reason: 'the mail server is back' });
    expect(status).toBe(200);
    expect(await end(runId)).toBe('completed');
    expect((await admin(`/audit?run_id=${runId}`)).body.data).toMatchObject([
      { actor: 'holder of ADMIN_TOKEN', action: 'retry', node: 'sendReceipt', reason: 'the mail server is back' },
    ]);
    expect((await json('/orders/C-5')).body.ledger).toHaveLength(1);
  });
});
