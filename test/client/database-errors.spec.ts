import { CycloneError } from '#cyclone/model/errors/index.js';
import { DatabaseError } from '#cyclone/client/database-error.js';
import { TestClient } from './fixture.js';
import { EchoFlow, steps } from './workflows.js';

// Real errors of the server, of every public call (F50).

let t: TestClient;
beforeAll(async () => {
  t = await TestClient.open();
});
afterAll(() => t.close());
beforeEach(() => t.reset());

const submits: Record<string, () => Promise<unknown>> = {
  submit: () => t.client.submit(EchoFlow, 1),
  submitOnce: () => t.client.submitOnce(EchoFlow, 'key', 1),
  submitMany: () => t.client.submitMany(EchoFlow, [1, 2]),
  'submitMany of many': () =>
    t.client.submitMany(
      EchoFlow,
      Array.from({ length: 1_000 }, (_, i) => i),
    ),
  enqueue: () => t.client.enqueue(steps.echo, 1),
  enqueueMany: () => t.client.enqueueMany(steps.echo, [1, 2]),
  'submit in a transaction': () => t.dataSource.transaction((tx) => t.client.submit(EchoFlow, 1, { tx })),
  'submitOnce in a transaction': () => t.dataSource.transaction((tx) => t.client.submitOnce(EchoFlow, 'k', 1, { tx })),
};

const changes: Record<string, (id: string) => Promise<unknown>> = {
  cancel: (id) => t.operator.cancel(id),
  pause: (id) => t.operator.pause(id),
  'pause by an actor': (id) => t.operator.pause(id, { actor: 'ops' }),
};

const reads: Record<string, (id: string) => Promise<unknown>> = {
  run: (id) => t.operator.run(id),
  runs: () => t.operator.runs(),
  countRuns: () => t.operator.countRuns(),
  steps: (id) => t.operator.steps(id),
  stepsPage: (id) => t.operator.stepsPage(id),
  explain: (id) => t.operator.explain(id, 'echo'),
  stats: () => t.operator.stats(),
  listExhausted: () => t.operator.listExhausted(),
  dlqGroups: () => t.operator.dlqGroups(),
  retry: (id) => t.operator.retry(id, 'echo'),
  retryAll: (id) => t.operator.retryAll(id),
  info: (id) => t.client.run(id).info(),
  wait: (id) => t.client.run(id).wait(),
  result: (id) => t.client.run(id).result(),
};

/** What each call throws, by its name. */
async function errorsOf(calls: Record<string, () => Promise<unknown>>): Promise<Record<string, unknown>> {
  const thrown: Record<string, unknown> = {};
  for (const [name, call] of Object.entries(calls)) {
    const error: unknown = await call().then(
      () => 'nothing',
      (reason: unknown) => reason,
    );
    thrown[name] = DatabaseError.is(error)
      ? { code: error.code, sqlState: error.sqlState, transient: error.transient, cause: error.cause !== undefined }
      : error;
  }
  return thrown;
}

const each = (calls: object, error: object) =>
  Object.fromEntries(Object.keys(calls).map((name) => [name, { code: 'CYCLONE_DATABASE', cause: true, ...error }]));

describe('what the server refuses reaches every caller as a DatabaseError (F50)', () => {
  it.each([
    ['53100', true],
    ['25006', true],
    ['57014', true],
    ['22P02', false],
  ])('%s of a change, transient: %s', async (sqlState, transient) => {
    const { id } = await t.client.submit(EchoFlow, 1);
    await t.sql(`
      create function refuse() returns trigger language plpgsql as $$
      begin raise exception 'refused' using errcode = '${sqlState}'; end $$`);
    await t.sql('create trigger refuse before insert or update on cyclone_runs for each row execute function refuse()');
    try {
      const calls = {
        ...submits,
        ...Object.fromEntries(Object.entries(changes).map(([name, call]) => [name, () => call(id)])),
      };
      expect(await errorsOf(calls)).toEqual(each(calls, { sqlState, transient }));
    } finally {
      await t.sql('drop function refuse cascade');
    }
  });

  it('a table that is missing, of every read', async () => {
    const { id } = await t.client.submit(EchoFlow, 1);
    await t.sql('alter table cyclone_runs rename to hidden_runs');
    await t.sql('alter table cyclone_steps rename to hidden_steps');
    await t.sql('drop view cyclone_v_steps, cyclone_v_runs, cyclone_v_dlq, cyclone_v_kinds');
    try {
      const calls = Object.fromEntries(Object.entries(reads).map(([name, call]) => [name, () => call(id)]));
      expect(await errorsOf(calls)).toEqual(each(calls, { sqlState: expect.stringMatching(/^42/), transient: false }));
    } finally {
      await t.sql('alter table hidden_runs rename to cyclone_runs');
      await t.sql('alter table hidden_steps rename to cyclone_steps');
    }
  });
});

describe('a DatabaseError', () => {
  const thrown = Object.assign(new Error('invalid input syntax for type json: "4111 1111"'), {
    code: '22P02',
    severity: 'ERROR',
  });

  it('names the call, the SQLSTATE and what to do, and quotes no value (S17)', () => {
    const error = new DatabaseError('submit of pay', thrown);
    expect(error.message).toBe(
      'The database refused the submit of pay (SQLSTATE 22P02): invalid input syntax for type json: "…". The same call will be refused again.',
    );
    expect(error.cause).toBe(thrown);
  });

  it('is told by its class and as an error of Cyclone; other errors say whether they are transient too', () => {
    expect(DatabaseError.is(new DatabaseError('submit', thrown))).toBe(true);
    expect(new CycloneError('x').transient).toBe(false);
    expect(Object.keys(new CycloneError('x'))).toEqual(['code']);
  });
});
