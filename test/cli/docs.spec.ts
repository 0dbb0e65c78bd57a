import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../structure/source-files.js';
import { EngineDatabase, type EngineSession } from '../support/engine-sql.js';
import { shell } from './command.js';

const FOLDER = join(ROOT, 'docs/operations');
const pages = readdirSync(FOLDER).map((file) => readFileSync(join(FOLDER, file), 'utf8'));
const readme = /## When things fail\n.*?\n## /s.exec(readFileSync(join(ROOT, 'README.md'), 'utf8'))?.[0] ?? '';

/** What stands in the code blocks of a language. */
function blocks(language: string): string[] {
  return [...pages, readme].flatMap((page) =>
    [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, text]) => text ?? ''),
  );
}

let database: EngineDatabase;
let db: EngineSession;
let cwd: string;
beforeAll(async () => {
  database = await EngineDatabase.create();
  db = database.main;
  cwd = mkdtempSync(join(tmpdir(), 'cyclone-docs-'));
});
afterAll(async () => {
  rmSync(cwd, { recursive: true, force: true });
  await database.drop();
});

/** Run 42, as whoever reads the page finds it: failed, or open where something open is stopped. */
async function situation(line: string): Promise<void> {
  await database.clear();
  await db.query('alter sequence cyclone_runs_id_seq restart with 42');
  const run = await db.submit({ charge: { kind: 'charge' }, send: { kind: 'send_email', after: ['charge'] } });
  if (/ (pause|cancel) /.test(line)) return;
  if (/ resume /.test(line)) await db.pause(run);
  else await db.failForGood(await db.claimOne({ kinds: ['charge'] }));
}

it('every command line of the pages works in the situation that it is for', async () => {
  const texts = blocks('bash').flatMap((block) => block.trimEnd().split('\n'));
  const lines = [...new Set(texts.map((line) => line.replace(/\s+#.*/, '')))];
  expect(lines.length).toBeGreaterThan(30);
  const expectedOf = (line: string): number => (line.startsWith('cyclone doctor') ? 6 : 0); // no worker is alive here
  const run = async (line: string) => {
    const { code, stderr } = await shell(line, { url: database.url, cwd });
    return { line, code, stderr: code === expectedOf(line) ? '' : stderr };
  };
  const changes = (line: string): boolean => /retry|pause|resume|cancel|purge|repair/.test(line);
  const outcomes = [];
  for (const line of lines.filter(changes)) {
    await situation(line);
    outcomes.push(await run(line));
  }
  await situation('');
  const looks = lines.filter((line) => !changes(line));
  for (let i = 0; i < looks.length; i += 3) outcomes.push(...(await Promise.all(looks.slice(i, i + 3).map(run))));
  expect(outcomes).toEqual(outcomes.map(({ line }) => ({ line, code: expectedOf(line), stderr: '' })));
}, 180_000);

it('every statement of the pages works', async () => {
  const statements = blocks('sql').flatMap((block) => block.split(/;\n/).filter((text) => text.trim() !== ''));
  expect(statements.length).toBeGreaterThan(7);
  await situation('');
  for (const statement of statements) await db.query(statement);
});
