import type { RunsQuery } from '#cyclone/client/operator-client.js';
import { TestClient } from './fixture.js';
import { EchoFlow, Tell } from './workflows.js';

let t: TestClient;
let ids: string[];
beforeAll(async () => {
  t = await TestClient.open();
  const runs = await t.client.submitMany(
    EchoFlow,
    Array.from({ length: 10 }, (_, i) => i),
    { tags: { shop: `o'brien` } },
  );
  const odd = await t.client.submit(Tell, 'ops');
  const keyed = await t.client.submitOnce(EchoFlow, 'key-1', 1);
  await odd.cancel();
  ids = [...runs.map(({ id }) => id), odd.id, keyed.id];
});
afterAll(() => t.close());
beforeEach(() => t.reset());

const list = async (query: RunsQuery) => (await t.operator.runs(query)).runs.map(({ id }) => id);
const refused = (option: string) => ({ code: 'CYCLONE_INVALID_OPTION', option });

describe('runs()', () => {
  it.each(['desc', 'asc'] as const)('gives every run once, page by page, there and back: %s', async (direction) => {
    const expected = direction === 'asc' ? ids : ids.toReversed();
    const forward: string[] = [];
    let page = await t.operator.runs({ direction, limit: 5 });
    expect(page.previous).toBeNull();
    forward.push(...page.runs.map(({ id }) => id));
    while (page.next !== null) {
      page = await t.operator.runs({ direction, limit: 5, cursor: page.next });
      forward.push(...page.runs.map(({ id }) => id));
    }
    expect(forward).toEqual(expected);
    const back: string[] = [];
    while (page.previous !== null) {
      page = await t.operator.runs({ direction, limit: 5, cursor: page.previous });
      back.unshift(...page.runs.map(({ id }) => id));
    }
    expect(back).toEqual(expected.slice(0, 10));
    expect(await list({ direction, limit: 5, cursor: page.next ?? '' })).toEqual(expected.slice(5, 10));
  });

  it('filters by state, workflow, tag, key, parent and time', async () => {
    const [odd = '', keyed = ''] = ids.slice(-2);
    expect(await list({ states: ['cancelled'] })).toEqual([odd]);
    expect(await list({ workflows: ['tell', 'gone'] })).toEqual([odd]);
    expect(await list({ tags: { shop: `o'brien` } })).toHaveLength(10);
    expect(await list({ tags: { shop: `x' or 1=1 --` } })).toEqual([]);
    expect(await list({ onceKey: 'key-1' })).toEqual([keyed]);
    expect(await list({ parent: odd })).toEqual([]);
    expect(await list({ createdFrom: new Date(Date.now() - 3_600_000), createdTo: '2999-01-01' })).toHaveLength(12);
    expect(await list({ createdFrom: '2999-01-01T00:00:00+02:00' })).toEqual([]);
    expect(await t.operator.countRuns({ states: ['running'] })).toEqual({ count: 11, capped: false });
  });

  it('refuses cursors of another filter, another direction or another list, and forged ones', async () => {
    const { next } = await t.operator.runs({ limit: 2, states: ['running', 'cancelled'] });
    const cursor = next ?? '';
    expect(await list({ limit: 3, states: ['cancelled', 'running'], cursor })).toHaveLength(3); // the same filter
    for (const query of [
      { states: ['running'] },
      {},
      { states: ['running', 'cancelled'], direction: 'asc' },
    ] as const) {
      await expect(t.operator.runs({ ...query, cursor })).rejects.toMatchObject(refused('cursor'));
    }
    await expect(t.operator.exhaustedPage({ cursor })).rejects.toMatchObject(refused('cursor'));
    await expect(t.operator.audit({ cursor })).rejects.toMatchObject(refused('cursor'));
    const [scope] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as [string];
    const forged = [
      [scope, 0, `1' or 1=1 --`],
      [scope, 0, '9223372036854775808'],
      [scope, 0, 5],
      [scope, 2, '5'],
      [scope, 0],
    ].map((parts) => Buffer.from(JSON.stringify(parts)).toString('base64url'));
    for (const wrong of [...forged, '', 'abc', '{}', 5, 'x'.repeat(10_000)]) {
      const query = { states: ['running', 'cancelled'], cursor: wrong } as RunsQuery;
      await expect(t.operator.runs(query)).rejects.toMatchObject(refused('cursor'));
    }
  });

  it.each([
    ['limit', { limit: 0 }],
    ['limit', { limit: 1_000_000_000 }],
    ['limit', { limit: '5' }],
    ['direction', { direction: 'sideways' }],
    ['states', { states: [`running' or 1=1 --`] }],
    ['states', { states: 'running' }],
    ['workflows', { workflows: [5] }],
    ['tags', { tags: 'shop' }],
    ['tags', { tags: { shop: 5 } }],
    ['onceKey', { onceKey: 'a\u0000' }],
    ['parent', { parent: 'abc' }],
    ['parent', { parent: '9223372036854775808' }],
    ['createdFrom', { createdFrom: 'yesterday' }],
    ['createdTo', { createdTo: '2026-13-01' }],
    ['createdTo', { createdTo: '2026-02-30' }],
    ['createdTo', { createdTo: '2026-02-28T00:00:00+23:00' }],
    ['createdTo', { createdTo: new Date(NaN) }],
  ])('refuses a wrong %s: %j', async (option, query) => {
    await expect(t.operator.runs(query as never)).rejects.toMatchObject(refused(option));
    expect(t.calls).toEqual([]);
  });
});
