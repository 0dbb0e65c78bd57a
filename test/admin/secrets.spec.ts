import { Injectable } from '@nestjs/common';
import {
  Action,
  StepContext,
  Workflow,
  WorkflowClient,
  lit,
  stepsOf,
  type PayloadPlace,
  type WorkflowBuilder,
  type WorkflowDefinition,
} from 'nestjs-cyclone';
import { AdminFixture, GUARDED, Order, type AdminApplication } from './fixture.js';

const CANARY = 'canary-5f1d07';

@Injectable()
class Leaky {
  /** A query that Postgres refuses with a message which quotes its parameter. */
  @Action({ retry: { maxAttempts: 2, backoff: { type: 'fixed', delay: 1 } } })
  async query(card: string, ctx: StepContext): Promise<void> {
    const tx = await ctx.completionTx();
    await tx.query('select $1::int', [card]);
  }
}
const leaky = stepsOf(Leaky);

@Workflow({ name: 'leak' })
class Leak implements WorkflowDefinition<string, void> {
  define(b: WorkflowBuilder, card: string): void {
    b.action(leaky.query, lit(card));
  }
}

/** What the redact hook does now. */
let redact: (value: unknown, place: PayloadPlace) => unknown;
let fixture: AdminFixture;
let app: AdminApplication;
beforeAll(async () => {
  fixture = await AdminFixture.create();
  app = await fixture.start({
    providers: [Leaky, Leak],
    admin: { ...GUARDED, redact: (value, place) => redact(value, place) },
  });
});
beforeEach(() => {
  redact = (value) => value;
});
afterAll(() => fixture.end());

const payload = async (id: string, node = 'charge', query = '') =>
  (await app.get(`/runs/${id}/steps/${node}/payload${query}`)).body;

/** Every GET of the document about a run, as the reader and as the administrator. */
async function readAll(id: string, node: string): Promise<void> {
  const { body: document } = await app.get('/openapi.json');
  for (const [template, { get }] of Object.entries(document.paths as Record<string, { get?: object }>)) {
    if (!get || template.endsWith('/payload')) continue;
    const path = template.replace('{id}', id).replace('{node}', node);
    for (const as of ['reader', 'admin']) expect((await app.get(path, { as })).status).toBe(200);
  }
}

describe('a secret', () => {
  it('in a payload is in no answer but that of the route for payloads, and there as redacted (S17)', async () => {
    redact = () => 'hidden';
    const id = await app.order(CANARY, 'failed');
    await readAll(id, 'charge');
    expect((await app.get(`/runs/${id}/steps/charge/payload`, { as: 'reader' })).status).toBe(403);
    expect(await payload(id)).toEqual({
      run_id: id,
      node: 'charge',
      input: { value: 'hidden', bytes: 8, omitted: false },
      output: { value: 'hidden', bytes: 8, omitted: false },
      panic_stack: null,
    });
    await app.post(`/runs/${id}/retry-all`);
    expect(app.bodies.filter((body) => body.includes(CANARY))).toEqual([]);
  });

  it('in a parameter of a query that failed is in no answer, no column of an error and no log (S17)', async () => {
    const run = await app.app.get(WorkflowClient).submit(Leak, CANARY);
    expect(await run.wait({ timeout: '20s' })).toBe('failed');
    await readAll(run.id, 'query');
    expect((await app.get(`/runs/${run.id}`)).body.failure.error).toContain('invalid input syntax');
    expect(app.bodies.filter((body) => body.includes(CANARY))).toEqual([]);
    expect(fixture.logs.lines.filter((line) => line.includes(CANARY))).toEqual([]);
    const stored = await fixture.sql(
      `select error, panic_stack from cyclone_steps where run_id = $1
       union all select error, panic_stack from cyclone_attempts where run_id = $1`,
      [run.id],
    );
    expect(stored.length).toBeGreaterThan(1);
    expect(JSON.stringify(stored)).not.toContain(CANARY);
  });

  it('in what a request asks for is not read out of a fault of the database', async () => {
    await fixture.sql('alter function cyclone_dlq_groups(text, bigint, int) rename to broken');
    try {
      const { status, body, text } = await app.get(`/dlq/groups?kind=${CANARY}`);
      expect(status).toBe(500);
      expect(body).toMatchObject({
        code: 'CYCLONE_INTERNAL',
        detail: expect.stringMatching(/look for [0-9a-f-]{36}\./),
      });
      expect(text).not.toMatch(/cyclone_dlq_groups|select|canary/i);
      const [, id] = /look for (\S+)\./.exec(body.detail as string)!;
      const logged = fixture.logs.lines.filter((line) => line.includes(id!));
      expect(logged).toEqual([expect.stringContaining('cyclone_dlq_groups')]);
      expect(logged[0]).not.toContain(CANARY);
    } finally {
      await fixture.sql('alter function broken(text, bigint, int) rename to cyclone_dlq_groups');
    }
  });
});

describe('the redact hook', () => {
  it('is told which payload it is, and may be asynchronous', async () => {
    const places: PayloadPlace[] = [];
    redact = async (value, place) => {
      places.push(place);
      return { seen: value };
    };
    const id = await app.order(7);
    expect(await payload(id, 'finish')).toMatchObject({
      input: { value: { seen: { value: 7 } } },
      output: { value: { seen: { value: 7 } } },
    });
    expect(places).toEqual([
      { runId: id, node: 'finish', part: 'input' },
      { runId: id, node: 'finish', part: 'output' },
    ]);
  });

  it('that throws shows nothing, and its error says nothing in the log', async () => {
    const id = await app.order(CANARY);
    const lines = fixture.logs.lines.length;
    redact = (value) => {
      throw new RangeError(`cannot mask ${JSON.stringify(value)}`);
    };
    const answer = await payload(id);
    expect(answer).toMatchObject({ input: { value: null, bytes: null, omitted: true } });
    expect(JSON.stringify(answer)).not.toContain(CANARY);
    const logged = fixture.logs.lines.slice(lines).join('\n');
    expect(logged).toContain('RangeError');
    expect(logged).not.toContain(CANARY);
  });

  it.each<[string, unknown, unknown]>([
    ['a bigint', { n: 9007199254740993n }, { n: '9007199254740993' }],
    ['a date', new Date(0), '1970-01-01T00:00:00.000Z'],
    ['nothing', undefined, null],
    ['a function', () => 1, null],
  ])('may give %s, which becomes JSON', async (_, given, shown) => {
    redact = () => given;
    const id = await app.order(1);
    expect((await payload(id)).input).toMatchObject({ value: shown, omitted: false });
  });

  it('that gives a cycle shows nothing', async () => {
    const cycle: Record<string, unknown> = {};
    cycle['itself'] = cycle;
    redact = () => cycle;
    const id = await app.order(1);
    expect((await payload(id)).input).toEqual({ value: null, bytes: null, omitted: true });
  });
});

describe('a payload', () => {
  it('longer than 64 KiB is shown on demand only', async () => {
    const text = 'ä'.repeat(40_000);
    const id = await app.order(text);
    expect((await payload(id)).input).toEqual({ value: null, bytes: 80_012, omitted: true });
    expect((await payload(id, 'charge', '?full=true')).input).toEqual({
      value: { value: text },
      bytes: 80_012,
      omitted: false,
    });
    expect((await payload(id, 'charge', '?full=yes')).status).toBe(400);
  });

  it('is null where there is none yet', async () => {
    const id = await app.later();
    expect(await payload(id)).toMatchObject({ output: { value: null, bytes: 4, omitted: false } });
  });
});

describe('a read', () => {
  it('ends after 5 s, so that nothing waits for it, and leaves no setting behind', async () => {
    await app.get('/doctor');
    await fixture.sql('begin');
    try {
      await fixture.sql('lock table cyclone_runs in access exclusive mode');
      const began = performance.now();
      const { status, body } = await app.get('/runs');
      expect({ status, code: body.code }).toEqual({ status: 503, code: 'CYCLONE_QUERY_TIMEOUT' });
      expect(performance.now() - began).toBeGreaterThan(4_900);
      expect((await app.get('/meta')).status).toBe(200);
    } finally {
      await fixture.sql('rollback');
    }
    expect((await app.get('/runs')).status).toBe(200);
    const { dataSource } = app.app.get(WorkflowClient)['engine'].connections;
    const settings = await Promise.all(Array.from({ length: 6 }, () => dataSource.query('show statement_timeout')));
    expect(new Set(settings.map(([row]: [{ statement_timeout: string }]) => row.statement_timeout))).toEqual(
      new Set(['0']),
    );
  });

  it.each([
    ['53100', 503, 'CYCLONE_DATABASE'],
    ['22P02', 500, 'CYCLONE_INTERNAL'],
  ])(
    'that the database refuses with %s is answered with %i, and none of its words (F50, S17)',
    async (state, status, code) => {
      const { id } = await app.app.get(WorkflowClient).submit(Order, { value: 1 }, { delay: '1h' });
      await fixture.sql(`
      create function refuse() returns trigger language plpgsql as $$
      begin raise exception 'the card 4111 is refused' using errcode = '${state}'; end $$`);
      await fixture.sql('create trigger refuse before update on cyclone_runs for each row execute function refuse()');
      try {
        const answer = await app.post(`/runs/${id}/pause`, {});
        expect({ status: answer.status, code: answer.body.code }).toEqual({ status, code });
        expect(JSON.stringify(answer.body)).not.toContain('4111');
      } finally {
        await fixture.sql('drop function refuse cascade');
      }
    },
  );

  it('that loses its connection is answered with 503, and the next one succeeds', async () => {
    const id = (await app.app.get(WorkflowClient).submit(Order, { value: 1 }, { delay: '1h' })).id;
    await fixture.sql('begin');
    await fixture.sql('lock table cyclone_runs in access exclusive mode');
    const waiting = { answered: false };
    const answer = app.get(`/runs/${id}`).finally(() => (waiting.answered = true));
    while (!waiting.answered) {
      await fixture.sql(
        `select pg_terminate_backend(pid) from pg_locks where not granted and relation = 'cyclone_runs'::regclass`,
      );
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await answer).body).toMatchObject({ status: 503, code: 'CYCLONE_CONNECTION_LOST' });
    await fixture.sql('rollback');
    expect((await app.get(`/runs/${id}`)).status).toBe(200);
  });
});
