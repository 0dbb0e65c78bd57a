import { OperationsStore, type Operation } from '#cyclone/store/operations-store.js';
import { EngineDatabase, type EngineSession } from '../support/engine-sql.js';
import { sessionOf } from '../support/session-of.js';

const store = new OperationsStore('public');
let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterEach(() => database.clear());
afterAll(() => database.drop());

async function operate(action: string, runId: string, more: Partial<Operation> = {}): Promise<string[]> {
  const operation = { node: null, additional: 0, reason: 'outage', actor: 'ann', detail: null, ...more };
  const rows = await store.operate(sessionOf(db), { action: action as Operation['action'], runId, ...operation });
  return rows.map(({ event, node, info }) =>
    event === 'refused' ? `refused ${info.reason}` : `${event} ${node}`.trim(),
  );
}

const audit = () =>
  db.query('select actor, action, run_id, node, reason, affected, detail from cyclone_audit order by id');

describe('an operation with its audit row', () => {
  it('says who did what, why, and to how many steps', async () => {
    const run = await db.submit({ a: [], b: [], c: ['a', 'b'] });
    expect(await operate('pause', run)).toEqual(['paused a', 'paused b', 'run_paused']);
    expect(await operate('resume', run, { actor: 'bob', reason: null })).toEqual([
      'resumed a',
      'resumed b',
      'run_resumed',
    ]);
    expect(await operate('cancel', run, { detail: { bulk: '7' } })).toEqual([
      'cancelled a',
      'cancelled b',
      'cancelled c',
      'run_cancelled',
    ]);
    const row = { actor: 'ann', run_id: run, node: null, reason: 'outage', detail: null };
    expect(await audit()).toEqual([
      { ...row, action: 'pause', affected: '2' },
      { ...row, actor: 'bob', action: 'resume', reason: null, affected: '2' },
      { ...row, action: 'cancel', affected: '3', detail: { bulk: '7' } },
    ]);
    expect((await db.run(run)).cancel_reason).toBe('outage');
  });

  it('retries one node, or all of them, with additional attempts (R25)', async () => {
    const run = await db.submit({ a: [], b: [] });
    await db.failForGood((await db.claim())[0]!);
    expect(await operate('retry', run, { node: 'a', additional: 3 })).toContain('run_retried');
    await db.failForGood((await db.claim())[0]!);
    expect(await operate('retry_all', run)).toContain('run_retried');
    expect(await audit()).toMatchObject([
      { action: 'retry', node: 'a', affected: '2', detail: { additionalAttempts: 3 } },
      { action: 'retry_all', node: null, affected: '2', detail: null },
    ]);
  });

  it('leaves no row when it is refused, whatever the reason (R24)', async () => {
    const run = await db.submit({ a: [] });
    expect(await operate('resume', run)).toEqual(['refused not_paused']);
    expect(await operate('retry_all', run)).toEqual(['refused not_retryable']);
    expect(await operate('retry', run, { node: 'nobody' })).toEqual(['refused node_not_found']);
    expect(await operate('retry', run)).toEqual(['refused node_not_found']);
    expect(await operate('cancel', '999999999999')).toEqual(['refused not_found']);
    expect(await operate('explode', run)).toEqual(['refused unknown_action']);
    await operate('cancel', run);
    expect(await operate('cancel', run)).toEqual(['refused already_terminal']);
    expect((await audit()).map(({ action }) => action)).toEqual(['cancel']);
  });

  it('names the role of the database when nobody says who acts', async () => {
    const run = await db.submit({ a: [] });
    await operate('pause', run, { actor: null });
    expect(await audit()).toMatchObject([{ actor: 'role postgres' }]);
  });

  it('is undone with the transaction that it was part of', async () => {
    const run = await db.submit({ a: [] });
    await db.query('begin');
    await operate('cancel', run);
    await db.query('rollback');
    expect(await audit()).toEqual([]);
    expect(await db.states(run)).toBe('running: a=available');
  });

  it('can be read by page, latest first, and filtered', async () => {
    const [first, second] = await db.submitMany([{ a: [] }, { a: [] }]);
    for (const run of [first!, second!]) {
      await operate('pause', run);
      await operate('resume', run, { actor: `o'brien --` });
    }
    const purge = { actor: 'ann', action: 'purge', runId: null, node: null, reason: 'space', affected: 12 };
    await db.query(`select cyclone_write_audit('ann', 'purge', null, null, 'space', 12, '{"olderThanMs": 5}')`);
    const page = await store.auditPage(sessionOf(db), { limit: 2 });
    expect(page).toMatchObject([
      { ...purge, detail: { olderThanMs: 5 } },
      { action: 'resume', runId: second },
    ]);
    const rest = await store.auditPage(sessionOf(db), { limit: 10, before: page[1]!.id });
    expect(rest.map(({ action }) => action)).toEqual(['pause', 'resume', 'pause']);
    expect(await store.auditPage(sessionOf(db), { limit: 10, runId: first!, actor: `o'brien --` })).toHaveLength(1);
    expect(await store.auditPage(sessionOf(db), { limit: 10, action: 'pause' })).toHaveLength(2);
  });
});
