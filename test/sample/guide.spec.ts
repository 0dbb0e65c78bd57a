import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import 'reflect-metadata';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { WorkflowClient } from 'nestjs-cyclone';
import { DataSource } from 'typeorm';
import { AppModule } from '../../apps/sample/src/app.module.js';
import { Settings } from '../../apps/sample/src/settings.js';
import { ROOT } from '../structure/source-files.js';
import { createDatabase, type TestDatabase } from '../support/postgres.js';
import { ShellSession } from './shell-session.js';

const page = readFileSync(join(ROOT, 'docs/sample.md'), 'utf8');
/** The command lines of the page, but those that install and start the application. */
const blocks = [...page.matchAll(/^```bash\n(.*?)^```$/gms)].map(([, text]) => text ?? '').slice(1);
const blockWith = (text: string): number => blocks.findIndex((block) => block.includes(text));

let database: TestDatabase;
let app: INestApplication;
let shell: ShellSession;
const answers: string[] = [];

beforeAll(async () => {
  database = await createDatabase();
  const settings = new Settings({ databaseUrl: database.url, cardLatency: 1, adminToken: 'secret' });
  app = await NestFactory.create(AppModule.forRoot(settings), { logger: ['error', 'fatal'], abortOnError: false });
  await app.listen(0, '127.0.0.1');
  shell = new ShellSession(process.env);
  const url = await app.getUrl();
  for (const block of blocks) {
    const here = block
      .replace(/^export DATABASE_URL=.*$/m, `export DATABASE_URL=${database.url}`)
      .replace('http://localhost:3000', url);
    answers.push(await shell.run(here));
    await everythingHasEnded();
  }
});
afterAll(async () => {
  await shell?.close();
  await app?.close();
  await database?.drop();
});

/** Whoever types the lines is slower than the work; a program is not. */
async function everythingHasEnded(): Promise<void> {
  const runs: { id: string }[] = await app.get(DataSource).query('SELECT id FROM cyclone_v_runs');
  await Promise.all(runs.map(({ id }) => app.get(WorkflowClient).run(id).wait({ timeout: '30s' })));
}

describe('the guide to the sample application', () => {
  it('places an order that is charged', () => {
    expect(answers[blockWith('"id":"order-1"')]).toContain('"created":true');
    expect(answers[blockWith('/orders/order-1')]).toMatch(/"state":"completed".*"amount":"168"/);
  });

  it('makes an order fail and shows why, without a word of SQL (R12)', () => {
    const look = answers[blockWith('cyclone dlq list')] ?? '';
    expect(look).toMatch(/"state":"failed","failure":"[^"]*declined the card","ledger":\[\]/);
    expect(look).toMatch(/charge .*discarded/);
    expect(look).toMatch(/sendReceipt .*cancelled/);
  });

  it('brings it back to completed by the command, charged once (R17)', () => {
    const after = answers[blockWith('retry $run --all') + 1] ?? '';
    expect(after).toMatch(/"state":"completed","failure":null,"ledger":\[\{"node":"charge","amount":"98"[^{]*\}\]/);
    expect(after).not.toMatch(/discarded|cancelled/);
  });

  it('brings another one back by HTTP, and the audit knows who did it (R17)', () => {
    const at = blockWith('retry-all');
    expect(answers[at]).toContain('the card terminal declined the card');
    expect(answers[at + 1]).toMatch(
      /"state":"completed","failure":null,"ledger":\[\{"node":"charge","amount":"98"[^{]*\}\]/,
    );
    expect(answers[at + 1]).toContain('"actor":"holder of ADMIN_TOKEN"');
  });

  it('takes a file, and tells its bad line', () => {
    const answer = answers[blockWith('/orders/import')] ?? '';
    expect(answer).toContain('"orders":1,"created":1,"existing":0,"incomplete":1,"badLines":1,"problems":[{"line":3,');
  });
});
