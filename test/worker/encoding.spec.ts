import { PermanentError } from '#cyclone/model/errors/index.js';
import { dropTemplate, Fixture, job, type TestHandler } from './fixture.js';

// The start refuses such a database (R22); what is refused for good for another reason is treated alike.
let fixture: Fixture;
beforeAll(async () => {
  fixture = await Fixture.open({ encoding: 'LATIN1' });
});
afterAll(async () => {
  await fixture.close();
  await dropTemplate();
});

describe('what the server refuses to store for good discards its step as permanent, executed once (F15)', () => {
  const calls = new Map<string, number>();
  const counted =
    (kind: string, run: TestHandler & Function): TestHandler =>
    (input, ctx) => {
      calls.set(kind, (calls.get(kind) ?? 0) + 1);
      return (run as (...args: unknown[]) => unknown)(input, ctx);
    };
  const handlers: Record<string, TestHandler> = {
    fine: counted('fine', () => 'Zürich'),
    output: counted('output', () => 'costs 5 €'),
    written: counted('written', async (_, ctx) => {
      const tx = await ctx.completionTx();
      await tx.query('insert into ledger values ($1, $2, 1)', [ctx.runId, ctx.node]);
      return 'costs 5 €';
    }),
    error: counted('error', () => {
      throw new Error('costs 5 €');
    }),
    permanent: counted('permanent', () => {
      throw new PermanentError('costs 😀');
    }),
    panic: counted('panic', () => {
      throw new TypeError('costs 5 €');
    }),
  };

  it('an output, an output in a completion transaction, and the texts of a failure', async () => {
    await fixture.worker(handlers).start();
    await fixture.submit(...Object.keys(handlers).map((kind) => job(kind)));
    await fixture.idle();
    const rows = await fixture.rows<{ kind: string }>(
      'select kind, state, attempt, reclaims, lease_generation as executions, error_kind, error from cyclone_steps order by kind',
    );
    const discarded = { state: 'discarded', attempt: 1, reclaims: 0, executions: 1, error_kind: 'permanent' };
    const refusal = (text: string) => expect.stringContaining(text) as string;
    expect(rows).toEqual([
      { kind: 'error', ...discarded, error: refusal('): costs 5 \\u{20ac}') },
      { kind: 'fine', state: 'completed', attempt: 1, reclaims: 0, executions: 1, error_kind: null, error: null },
      {
        kind: 'output',
        ...discarded,
        error: refusal('refuses the completion of this step: character with byte sequence 0xe2 0x82 0xac'),
      },
      { kind: 'panic', ...discarded, error: refusal('): handler panicked: TypeError: costs 5 \\u{20ac}') },
      { kind: 'permanent', ...discarded, error: refusal('): costs \\u{1f600}') },
      {
        kind: 'written',
        ...discarded,
        error: refusal('refuses the completion of this step: character with byte sequence 0xe2 0x82 0xac'),
      },
    ]);
    expect(Object.fromEntries(calls)).toEqual(Object.fromEntries(Object.keys(handlers).map((kind) => [kind, 1])));
    expect(await fixture.rows('select * from ledger')).toEqual([]);
  });
});
