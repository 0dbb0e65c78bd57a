import pg from 'pg';
import { chain, dropTemplate, Fixture, job, SOON } from '../worker/fixture.js';

let fixture: Fixture;
afterEach(() => fixture.close());
afterAll(dropTemplate);

const { INT8, INT4, BOOL, JSON: JSON_TYPE, JSONB, TIMESTAMPTZ, TEXT } = pg.types.builtins;

/** Measured: type parsers that an application sets in `pg`, and TypeORM's parseInt8, are global and reach every query of the process. */
describe('whatever an application does to the type parsers of pg (C17)', () => {
  it('the engine reads what the server sent', async () => {
    fixture = await Fixture.open();
    // Beyond 2^53, where a number would name the run of a neighbour (S62).
    await fixture.rows('alter sequence cyclone_runs_id_seq restart with 9007199254740993');
    const asTexts = new pg.Client({ connectionString: fixture.database.url, types: { getTypeParser: () => String } });
    await asTexts.connect();
    for (const type of [INT8, INT4, BOOL, JSON_TYPE, JSONB, TIMESTAMPTZ, TEXT]) {
      pg.types.setTypeParser(type, () => 'mangled');
    }
    const seen: unknown[] = [];
    await fixture
      .worker({
        echo: (input: unknown, ctx) => {
          seen.push([ctx.runId, ctx.attempt, input]);
          return input;
        },
        failOnce: (_: unknown, ctx) => {
          if (ctx.attempt === 1) throw new Error('once');
        },
      })
      .start();
    const [one, two] = await fixture.submit(
      chain(['echo', 'echo'], { n: 1, deep: [true, null] }),
      job('failOnce', null, { policy: { backoff: SOON } }),
    );
    expect([one, two]).toEqual(['9007199254740993', '9007199254740994']);
    for (let open = '1'; open !== '0';) {
      const { rows } = await asTexts.query<{ open: string }>(
        `select count(*) as open from cyclone_runs where state = 'running'`,
      );
      open = rows[0]?.open ?? '0';
    }
    await asTexts.end();
    const input = { n: 1, deep: [true, null] };
    expect(seen).toEqual([
      ['9007199254740993', 1, input],
      ['9007199254740993', 1, input],
    ]);
    expect(fixture.typesOf(two as string)).toEqual(['claimed', 'retried', 'claimed', 'completed', 'run_completed']);
  });
});
