import { EngineDatabase, type EngineSession } from '../support/engine-sql.js';
import { cyclone } from './command.js';

let database: EngineDatabase;
let db: EngineSession;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
});
afterAll(() => database.drop());

const SQL = `x' OR 1=1--`;

/** Everything in the database, as one text. */
const snapshot = () =>
  db.value<string>(
    `select jsonb_build_array((select jsonb_agg(r order by id) from cyclone_runs r), (select jsonb_agg(s order by run_id, node) from cyclone_steps s),
                              (select count(*) from cyclone_audit))::text`,
  );

describe('what makes no sense', () => {
  it('is refused with the exit code that fits and a sentence on stderr, and changes nothing (S62, S81, F3)', async () => {
    const completed = await db.submit({ a: [] });
    await db.flush([await db.claimOne()]);
    const failed = await db.submit({ a: [] });
    await db.failForGood(await db.claimOne());
    const cancelled = await db.submit({ a: [] });
    await db.cancel(cancelled);
    const running = await db.submit({ a: [], b: ['a'] });
    const child = await db.submit({ a: { kind: 'child' } });
    await db.query(`update cyclone_runs set parent_run_id = $1, parent_node = 'b' where id = $2`, [running, child]);
    const other = await cyclone(['runs', 'list', '--limit', '2'], { url: database.url });
    const cursor = /--cursor (\S+)/.exec(other.stderr)?.[1] ?? '';
    expect(cursor).not.toBe('');

    const cases: [line: string[], code: number, says: RegExp][] = [
      [['steps', 'abc'], 2, /runId must be a string of decimal digits/],
      [['steps', '-1'], 4, /There is no run -1/],
      [['runs', 'get', '9223372036854775808'], 4, /There is no run 9223372036854775808/],
      [['cancel', '999999999999'], 4, /There is no run 999999999999/],
      [['cancel', SQL], 2, /decimal digits/],
      [['explain', running, SQL], 4, /has no node "x' OR 1=1--"/],
      [['retry', failed, SQL], 4, /has no node/],
      [['retry', failed], 2, /Name the node to retry, or pass --all/],
      [['retry', failed, 'a', '--all'], 2, /not both/],
      [['retry', failed, '--all', '--attempts', '-5'], 2, /additionalAttempts must be a whole number/],
      [['retry', completed, '--all'], 5, /the run is completed/],
      [['retry', child, '--all'], 5, /Retry its root run/],
      [['cancel', cancelled], 5, /is already cancelled/],
      [['pause', completed], 5, /is already completed/],
      [['resume', running], 5, /is running, not paused/],
      [['resume', running, '--dry-run'], 5, /is running, not paused/],
      [['purge', '--older-than', '-5m'], 2, /olderThan must be a duration/],
      [['purge', '--older-than', 'tomorrow'], 2, /olderThan must be a duration/],
      [['purge', '--older-than', '0s', '--limit', '0'], 2, /limit must be a whole number from 1/],
      [['dlq', 'retry', '--limit', '1000000000'], 2, /limit must be a whole number from 1 to 1000000/],
      [['dlq', 'retry', '--yes'], 2, /all must be true for a change of everything.*--all/],
      [['dlq', 'retry', '--reason', '', '--yes'], 2, /all must be true/],
      [['purge', '--yes'], 2, /all must be true.*name olderThan or defaultAge/],
      [['repair', 'stranded-runs', '--yes'], 2, /all must be true/],
      [['purge', '--yes', '--dry-run'], 2, /cannot be used with/],
      [['dlq', 'list', '--limit', '0'], 2, /--limit must be from 1/],
      [['dlq', 'list', '--reason', SQL], 2, /reason must be one of/],
      [['dlq', 'list', '--kind', SQL], 0, /No dead letters/],
      [['runs', 'list', '--tag', `shop=${SQL}`], 0, /No runs/],
      [['runs', 'list', '--limit', '1000000000'], 2, /--limit must be from 1/],
      [['runs', 'list', '--state', SQL], 2, /states must be one of/],
      [['runs', 'list', '--state', 'failed', '--cursor', cursor], 2, /another filter/],
      [['repair', 'stranded-runs', '--batch', '0'], 2, /batch must be a whole number/],
      [['stats', '--format', 'ids'], 2, /no ids/],
      [
        ['stats', '--schema', 'nowhere'],
        3,
        /The Cyclone tables are missing.*npx nestjs-cyclone migrate --schema nowhere/,
      ],
      [['stats', '--schema', SQL], 3, /tables are missing/],
    ];
    const before = await snapshot();
    const outcomes = [];
    // Two at a time: each is a process.
    for (let i = 0; i < cases.length; i += 2) {
      const pair = cases.slice(i, i + 2).map(([line]) => cyclone(line, { url: database.url }));
      outcomes.push(...(await Promise.all(pair)));
    }
    const told = outcomes.map(({ code, stdout, stderr }, i) => ({
      line: cases[i]?.[0].join(' '),
      code,
      stdout,
      says: cases[i]?.[2].test(stderr) ? true : stderr,
    }));
    expect(told).toEqual(cases.map(([line, code]) => ({ line: line.join(' '), code, stdout: '', says: true })));
    expect(await snapshot()).toBe(before);
  }, 180_000);
});

describe('the command without commander', () => {
  it('says what to install', async () => {
    const module = (source: string) => `data:text/javascript,${encodeURIComponent(source)}`;
    const hook = module(`export function resolve(name, context, next) {
      if (name === "commander") throw Object.assign(new Error("not found"), { code: "ERR_MODULE_NOT_FOUND" });
      return next(name, context);
    }`);
    const register = module(`import { register } from "node:module"; register(${JSON.stringify(hook)});`);
    const env = { NODE_OPTIONS: `--import=${register}` };
    const { code, stdout, stderr } = await cyclone(['stats'], { env });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('npm install commander@14');
  });
});
