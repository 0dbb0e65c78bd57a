import type { StepContext } from '#cyclone/graph/step-context.js';
import type { CallObserver } from '#cyclone/store/session.js';
import { dropTemplate, Fixture, graph, job, type TestNode } from './fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

const LEVELS = ['repeatable read', 'serializable'];

describe.each(LEVELS)('a default isolation that becomes %s while workers live', (level) => {
  it('changes nothing: completions stay at read committed, none is charged, no run is stranded (F47, R22)', async () => {
    const lanes = new Set<string | null>();
    const observer: CallObserver = async (call, phase, client) => {
      if (call !== 'cyclone_flush' || phase !== 'before') return;
      const result = await client.query({ text: 'show transaction_isolation', rowMode: 'array' });
      lanes.add((result as { rows: string[][] }).rows[0]?.[0] ?? null);
    };
    fixture = await Fixture.open({ observer });
    const other = await fixture.another();
    const work = async (_: unknown, ctx: StepContext) => {
      const tx = await ctx.completionTx();
      await tx.query('insert into ledger values ($1, $2, 1)', [ctx.runId, ctx.node]);
      return ((await tx.query('show transaction_isolation')) as unknown[])[0];
    };
    await fixture.worker({ work, plain: () => null }, { queues: { default: 20 } }).start();
    await other.rows(`alter database ${fixture.database.name} set default_transaction_isolation = '${level}'`);
    await other.rows(
      `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    );

    const { nodes: base } = job('work', null, { maxAttempts: 1 });
    const node = (name: string, more: Partial<TestNode>): TestNode => ({ ...base[0], node: name, ...more }) as TestNode;
    // Siblings before a join: at another level each may miss the other, and the join is stranded.
    const run = graph(
      [
        node('a', { dependents: 1 }),
        node('b', { dependents: 1 }),
        node('c', { kind: 'plain', dependents: 1 }),
        node('join', { openDeps: 3 }),
      ],
      [
        ['join', 'a'],
        ['join', 'b'],
        ['join', 'c'],
      ],
    );
    await other.submit(...Array.from({ length: 25 }, () => run));
    await other.idle();
    expect(
      await other.rows(
        'select kind, state, attempt, output, count(*)::int as n from cyclone_steps group by kind, state, attempt, output order by kind',
      ),
    ).toEqual([
      { kind: 'plain', state: 'completed', attempt: 1, output: null, n: 25 },
      {
        kind: 'work',
        state: 'completed',
        attempt: 1,
        output: { transaction_isolation: 'read committed' },
        n: 75,
      },
    ]);
    expect([...lanes]).toEqual(['read committed']);
  });
});
