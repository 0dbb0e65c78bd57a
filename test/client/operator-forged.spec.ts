import fc from 'fast-check';
import { CycloneError } from '#cyclone/model/errors/index.js';
import { Discard, TestClient } from './fixture.js';
import { EchoFlow, Wide } from './workflows.js';

let t: TestClient;
let runId: string;
beforeAll(async () => {
  t = await TestClient.open();
  for (let i = 0; i < 3; i++) runId = (await t.client.submit(EchoFlow, i)).id;
  await t.work(() => new Discard('no'));
  await t.sql(
    `insert into cyclone_audit (at, actor, action, affected) values (now(), 'ann', 'purge', 1), (now(), 'ann', 'purge', 1)`,
  );
});
afterAll(() => t.close());

const time = fc.oneof(
  fc.constantFrom(
    '0000-01-01T00:00:00Z',
    '0001-01-01T00:00:00+14:00',
    '9999-12-31T23:59:59.999999-14:00',
    '2026-02-30T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:00:60Z',
    '2026-01-01T00:00:00+05:99',
    '2026-01-01T00:00:00+15:00',
    '10000-01-01T00:00:00Z',
    '+275760-09-13T00:00:00.000Z',
    '-000001-01-01T00:00:00Z',
    'infinity',
    'now',
    '2026-13-01',
    '0000-00-00',
  ),
  fc.date({ noInvalidDate: false }),
  fc.date().map(String),
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
);
const id = fc.constantFrom(
  '0',
  '1',
  '-1',
  '9223372036854775807',
  '9223372036854775808',
  '1e3',
  '0x1',
  ' 1',
  '1'.repeat(40),
);
const key = fc.oneof(
  time,
  id,
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom('\u0000', '\ud800', 'x'.repeat(3_000)),
);
const anything = fc.oneof(key, fc.integer(), fc.double(), fc.constant(null), fc.anything());
const whole = fc.oneof(fc.constantFrom(0, 1, 10_000, 10_001, 2 ** 31, 2 ** 53, 1e300, NaN, -1, 0.5), anything);

/** The same cursor with other keys; what is no text of JSON cannot be one. */
const forged = (cursor: string, keys: readonly unknown[], backwards: unknown): string => {
  const [scope] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
  return Buffer.from(JSON.stringify([scope, backwards, ...keys])).toString('base64url');
};

/** That the call gives an answer, or refuses what was asked for before the database does. */
async function expectAnswered(call: () => Promise<unknown>): Promise<void> {
  try {
    await call();
  } catch (error) {
    if (!CycloneError.is(error)) throw error;
    expect(['CYCLONE_INVALID_OPTION', 'CYCLONE_RUN_NOT_FOUND', 'CYCLONE_NODE_NOT_FOUND']).toContain(error.code);
  }
}

const RUNS = { numRuns: 150 };

describe('what was forged or mistyped (F28)', () => {
  it('in a cursor of the list of runs', async () => {
    const { next } = await t.operator.runs({ limit: 1 });
    await fc.assert(
      fc.asyncProperty(fc.array(key, { minLength: 1, maxLength: 2 }), fc.constantFrom(0, 1, 2), (keys, backwards) =>
        expectAnswered(() => t.operator.runs({ limit: 1, cursor: forged(next ?? '', keys, backwards) })),
      ),
      RUNS,
    );
    const last = forged(next ?? '', ['9223372036854775807'], 1);
    const page = await t.operator.runs({ limit: 1, cursor: last });
    await t.operator.runs({ limit: 1, cursor: page.next ?? '' });
  });

  it('in a cursor of dead letters, with the year 0 for one', async () => {
    const { next } = await t.operator.exhaustedPage({ limit: 1 });
    const of = (keys: readonly unknown[]) =>
      t.operator.exhaustedPage({ limit: 1, cursor: forged(next ?? '', keys, 0) });
    await expect(of(['0000-01-01T00:00:00.000000Z', '1', 'a'])).rejects.toMatchObject({
      code: 'CYCLONE_INVALID_OPTION',
      option: 'cursor',
    });
    await fc.assert(
      fc.asyncProperty(fc.oneof(time.map(String), key), fc.oneof(id, key), key, (at, run, node) =>
        expectAnswered(() => of([at, run, node])),
      ),
      RUNS,
    );
  });

  it('in a cursor of steps and of the audit', async () => {
    const wide = (await t.client.submit(Wide, 2)).id;
    const steps = await t.operator.stepsPage(wide, { limit: 1 });
    const audit = await t.operator.audit({ limit: 1 });
    await fc.assert(
      fc.asyncProperty(key, async (at) => {
        await expectAnswered(() => t.operator.stepsPage(wide, { limit: 1, cursor: forged(steps.next ?? '', [at], 0) }));
        await expectAnswered(() => t.operator.audit({ limit: 1, cursor: forged(audit.next ?? '', [at], 0) }));
      }),
      RUNS,
    );
  });

  it('in place of a cursor', () =>
    fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string(),
          fc.base64String(),
          fc.json().map((text) => Buffer.from(text).toString('base64url')),
          anything,
        ),
        async (cursor) => {
          await expectAnswered(() => t.operator.runs({ cursor: cursor as string }));
          await expectAnswered(() => t.operator.exhaustedPage({ cursor: cursor as string }));
        },
      ),
      RUNS,
    ));

  it('in the times and the parent of a filter of runs', () =>
    fc.assert(
      fc.asyncProperty(fc.record({ createdFrom: time, createdTo: time, parent: id }, { requiredKeys: [] }), (query) =>
        expectAnswered(() => t.operator.runs(query as never)),
      ),
      RUNS,
    ));

  it('in a filter of runs', () =>
    fc.assert(
      fc.asyncProperty(
        fc.record(
          {
            createdFrom: fc.oneof(time, anything),
            createdTo: fc.oneof(time, anything),
            parent: fc.oneof(id, anything),
            onceKey: anything,
            limit: whole,
            states: fc.oneof(anything, fc.array(anything)),
            workflows: fc.oneof(anything, fc.array(anything)),
            tags: fc.oneof(anything, fc.dictionary(fc.string({ unit: 'binary' }), anything)),
          },
          { requiredKeys: [] },
        ),
        async (query) => {
          await expectAnswered(() => t.operator.runs(query as never));
          await expectAnswered(() => t.operator.countRuns(query as never));
        },
      ),
      RUNS,
    ));

  it('in a filter of dead letters and in what a change takes', () =>
    fc.assert(
      fc.asyncProperty(anything, fc.oneof(id, anything), whole, async (text, run, number) => {
        await expectAnswered(() => t.operator.listExhausted({ kind: text, since: number, limit: number } as never));
        await expectAnswered(() =>
          t.operator.purgeTerminalRuns({ dryRun: true, olderThan: number, limit: number } as never),
        );
        await expectAnswered(() => t.operator.repairStrandedRuns({ dryRun: true, batch: number } as never));
        await expectAnswered(() => t.operator.explain(run as string, text as string));
        await expectAnswered(() => t.operator.stepsPage(run as string, { parentNode: text, limit: number } as never));
        await expectAnswered(() => t.operator.audit({ runId: run, action: text, actor: text } as never));
      }),
      RUNS,
    ));

  it('never takes the attempts of a step beyond what Postgres counts', async () => {
    await t.sql('update cyclone_steps set max_attempts = 2147483000 where run_id = $1', [runId]);
    await t.operator.retryAll(runId, { additionalAttempts: 1_000_000 });
    expect(await t.sql('select max(max_attempts) as n from cyclone_steps where run_id = $1', [runId])).toEqual([
      { n: 2147483647 },
    ]);
  });
});
