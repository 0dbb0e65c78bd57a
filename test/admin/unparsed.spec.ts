import type { NestExpressApplication } from '@nestjs/platform-express';
import { AdminFixture, type AdminApplication, type Answer } from './fixture.js';

let fixture: AdminFixture;
beforeAll(async () => {
  fixture = await AdminFixture.create();
});
afterEach(() => fixture.closeAll());
afterAll(() => fixture.end());

type Configure = (app: NestExpressApplication) => unknown;

/** An application in which `configure` mounts all that reads bodies. */
const startWith = (configure: Configure): Promise<AdminApplication> =>
  fixture.start({ bodyParser: false, configure: (app) => configure(app as NestExpressApplication) });

const anyType = { type: (): boolean => true };

/** Everything that a mutation could change. */
const snapshot = () =>
  fixture.sql(`select (select json_agg(r order by id) from cyclone_runs r)::text as runs,
                      (select json_agg(s order by run_id, node) from cyclone_steps s)::text as steps,
                      (select count(*)::int from cyclone_audit) as audit`);

/** Sends every mutation, which would be a real one if its body were read, and broken JSON; gives the answers. */
async function mutate(app: AdminApplication, id: string): Promise<Answer[]> {
  const paths: [string, object][] = [
    ['/dlq/retry', { kind: 'mail', dry_run: false }],
    ['/health/stranded/repair', { dry_run: false, all: true }],
    ['/purge', { older_than: 1, dry_run: false }],
    [`/runs/${id}/cancel`, { reason: 'x' }],
    [`/runs/${id}/pause`, {}],
    [`/runs/${id}/resume`, {}],
    [`/runs/${id}/retry-all`, {}],
    [`/runs/${id}/steps/charge/retry`, {}],
  ];
  const answers: Answer[] = [];
  for (const [path, body] of paths) {
    for (const sent of [body, '{"kind":', '']) answers.push(await app.post(path, sent));
  }
  return answers;
}

describe('a mutation whose body was not parsed is refused and changes nothing (F3)', () => {
  it.each<[string, Configure]>([
    ['without any parser', () => undefined],
    ['with a parser of another type', (app) => app.useBodyParser('json', { type: 'application/vnd.api+json' })],
    ['with a parser that gives bytes', (app) => app.useBodyParser('raw', anyType)],
    ['with a parser that gives text', (app) => app.useBodyParser('text', anyType)],
    [
      'with one that leaves an empty object for what it does not read',
      (app) => app.use((request: { body: unknown }, _: unknown, next: () => void) => ((request.body = {}), next())),
    ],
  ])('on Express %s', async (_, configure) => {
    const app = await startWith(configure);
    const id = await app.order('failed', 'failed');
    const before = await snapshot();
    const statuses = (await mutate(app, id)).map(({ status }) => status);
    expect(statuses.filter((status) => status !== 400 && status !== 415)).toEqual([]);
    expect(await snapshot()).toEqual(before);
  });

  it('on Express in words that say what to do', async () => {
    const app = await startWith(() => undefined);
    const answer = await app.post('/dlq/retry', { kind: 'mail', dry_run: false });
    expect(answer).toMatchObject({ status: 415, body: { code: 'CYCLONE_UNSUPPORTED_MEDIA_TYPE' } });
    expect(answer.body.detail).toMatch(/has parsed the body as JSON\..*bodyParser.*Nothing was changed/);
    const none = await app.post('/dlq/retry', '');
    expect(none).toMatchObject({ status: 400, body: { detail: expect.stringContaining('send {} at least') } });
  });

  it('on Fastify, whose own parser works or refuses', async () => {
    const app = await fixture.start({ platform: 'fastify', bodyParser: false });
    const id = await app.order('failed', 'failed');
    const before = await snapshot();
    for (const path of ['/dlq/retry', '/health/stranded/repair', '/purge', `/runs/${id}/cancel`]) {
      for (const body of ['{"kind":', '']) expect((await app.post(path, body)).status).toBe(400);
      const headers = { 'content-type': 'application/vnd.api+json' };
      expect((await app.post(path, { dry_run: false }, { headers })).status).toBe(415);
    }
    expect(await snapshot()).toEqual(before);
    expect((await app.post('/dlq/retry', { kind: 'charge' })).body).toMatchObject({
      skipped: 0,
      dry_run: true,
      stopped: false,
    });
  });

  it('and one that a parser of the application has read works', async () => {
    const app = await startWith((express) => express.useBodyParser('json'));
    const id = await app.later();
    expect((await app.post(`/runs/${id}/cancel`, {})).body.run).toMatchObject({ state: 'cancelled' });
  });
});
