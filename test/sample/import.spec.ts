import { request } from 'node:http';
import 'reflect-metadata';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { WorkflowClient } from 'nestjs-cyclone';
import { DataSource } from 'typeorm';
import { AppModule } from '../../apps/sample/src/app.module.js';
import { generateOrders } from '../../apps/sample/src/demo/generate-orders.js';
import { MAX_CSV_BYTES } from '../../apps/sample/src/orders/csv-body.js';
import { OrdersService } from '../../apps/sample/src/orders/orders.service.js';
import { Settings } from '../../apps/sample/src/settings.js';
import { createDatabase, type TestDatabase } from '../support/postgres.js';

const HEADER = 'order_id,product_id,unit_price,quantity,discount';

let database: TestDatabase;
let app: INestApplication;
let url: string;

beforeAll(async () => {
  database = await createDatabase();
  const settings = new Settings({ databaseUrl: database.url, cardLatency: 1 });
  app = await NestFactory.create(AppModule.forRoot(settings), { logger: ['fatal'], abortOnError: false });
  await app.listen(0, '127.0.0.1');
  url = await app.getUrl();
});
afterAll(async () => {
  await app?.close();
  await database?.drop();
});

async function send(body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/orders/import`, {
    method: 'POST',
    headers: { 'content-type': 'text/csv', ...headers },
    body,
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const query = (sql: string) => app.get(DataSource).query(sql);
const counted = async (table: string) => (await query(`SELECT count(*)::int AS rows FROM ${table}`))[0].rows as number;

async function everythingHasEnded(): Promise<string[]> {
  const runs: { id: string }[] = await query('SELECT id FROM cyclone_v_runs');
  return Promise.all(runs.map(({ id }) => app.get(WorkflowClient).run(id).wait({ timeout: '120s' })));
}

describe('POST /orders/import', () => {
  it('places the orders of the file, and says of each bad line where it is and why', async () => {
    const text = [
      `${HEADER},note,more`,
      'i-1,11,14.00,12,0.05,x,ignored',
      'i-2,42,9.80,10,0,"two',
      'lines",x',
      'i-4,72,34.80,many,0,x,',
      'i-3,"11,14,1,0,x,',
      'i-1,72,34.80,5,,,',
      'i-4,11,14.00,1,0,,',
    ].join('\r\n');
    const { status, body } = await send(`\uFEFF${text}`, { 'content-type': 'text/csv; charset=utf-8' });
    expect(status).toBe(202);
    expect(body).toEqual({
      orders: 2,
      created: 2,
      existing: 0,
      incomplete: 2,
      badLines: 2,
      problems: [
        { line: 5, reason: expect.stringContaining('quantity is "many": quantity must') },
        { line: 6, reason: 'a quote is not closed' },
      ],
    });

    // F8: an order of which a line was bad was not placed, so the corrected file places it with all of its lines.
    const corrected = await send(text.replace('many', '2').replace('"11,', '11,'));
    expect(corrected.body).toEqual({ orders: 4, created: 2, existing: 2, incomplete: 0, badLines: 0, problems: [] });
    await everythingHasEnded();
    const order = (await (await fetch(`${url}/orders/i-1`)).json()) as object;
    expect(order).toMatchObject({
      state: 'completed',
      ledger: [{ amount: '333.6' }],
      stock: [{ line: 1 }, { line: 2 }],
    });
    const mended = (await (await fetch(`${url}/orders/i-4`)).json()) as object;
    expect(mended).toMatchObject({ ledger: [{ amount: '83.6' }], stock: [{ line: 1 }, { line: 2 }] });
  });

  it('makes nothing twice of a large file that is sent three times, twice of them at once (R7)', async () => {
    const before = await counted('ledger');
    const text = [...generateOrders(400, 7)].join('');
    const both = await Promise.all([send(text), send(text)]);
    expect(both.map(({ status }) => status)).toEqual([202, 202]);
    const created = both.map(({ body }) => Number(body['created']));
    expect(created[0]! + created[1]!).toBe(400);
    expect((await send(text)).body).toEqual({
      orders: 400,
      created: 0,
      existing: 400,
      incomplete: 0,
      badLines: 0,
      problems: [],
    });

    expect(new Set(await everythingHasEnded())).toEqual(new Set(['completed']));
    expect((await counted('ledger')) - before).toBe(400);
    expect(await counted('orders')).toBe(await counted('cyclone_v_runs'));
  });

  it('finishes an import that broke off when it is sent again (R7)', async () => {
    const text = [HEADER, ...Array.from({ length: 30 }, (_, i) => `again-${i},11,14,1,0`)].join('\n');
    const service = app.get(OrdersService);
    const place = service.place.bind(service);
    let left = 13;
    service.place = async (order) => {
      if (left-- === 0) throw new Error('the connection was lost');
      return place(order);
    };
    try {
      expect((await send(text)).status).toBe(500);
    } finally {
      service.place = place;
    }
    const { body } = await send(text);
    expect(body).toMatchObject({ orders: 30, badLines: 0 });
    expect(body['existing']).toBeGreaterThanOrEqual(12);
    expect(await query(`SELECT count(*)::int AS rows FROM orders WHERE id LIKE 'again-%'`)).toEqual([{ rows: 30 }]);
  });

  it('lists at most a thousand bad lines, and counts all', async () => {
    const { status, body } = await send([HEADER, ...Array.from({ length: 1_500 }, () => 'b,b,b,b,b')].join('\n'));
    expect(status).toBe(202);
    expect(body).toMatchObject({ orders: 0, created: 0, existing: 0, badLines: 1_500 });
    expect(body['problems']).toHaveLength(1_000);
  });

  it.each([
    ['a file without the columns', 400, 'order_id,product_id\n1,2', {}, 'unit_price, quantity, discount is not there'],
    ['a column twice', 400, `${HEADER},quantity\n`, {}, 'names the column quantity twice'],
    ['an empty body', 400, '', {}, 'The first line must name the columns'],
    ['what is not UTF-8', 400, Uint8Array.of(0xff, 0xfe, 0x00), {}, 'not encoded in UTF-8'],
    ['JSON', 415, '{"id":"x"}', { 'content-type': 'application/json' }, 'text/csv'],
    ['a body without a type', 415, `${HEADER}\n`, { 'content-type': 'application/octet-stream' }, 'text/csv'],
    ['a compressed body', 415, `${HEADER}\n`, { 'content-encoding': 'gzip' }, 'Content-Encoding'],
    ['more than the limit', 413, 'x'.repeat(3 * MAX_CSV_BYTES), {}, `larger than ${MAX_CSV_BYTES} bytes`],
  ])('refuses %s with %i and places nothing', async (_, status, body, headers, message) => {
    const before = await counted('orders');
    const answer = await send(body, headers as Record<string, string>);
    expect(answer).toMatchObject({ status, body: { statusCode: status, message: expect.stringContaining(message) } });
    expect(await counted('orders')).toBe(before);
  });

  it('refuses a body of unknown length as soon as it is too large, before its end', async () => {
    const status = await new Promise((resolve, reject) => {
      const call = request(`${url}/orders/import`, { method: 'POST', headers: { 'content-type': 'text/csv' } });
      call.on('response', ({ statusCode }) => {
        resolve(statusCode);
        call.destroy();
      });
      call.on('error', reject);
      call.write('x'.repeat(MAX_CSV_BYTES + 1)); // and never an end
    });
    expect(status).toBe(413);
  });
});
