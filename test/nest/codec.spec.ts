import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Injectable, type INestApplicationContext } from '@nestjs/common';
import { IsString } from 'class-validator';
import {
  OperatorClient,
  RetryAfterError,
  Step,
  StepContext,
  Workflow,
  WorkflowBuilder,
  WorkflowClient,
  from,
  join as joined,
  lit,
  stepsOf,
  type PayloadCodec,
  type PayloadLeaf,
  type PayloadPlace,
  type WorkflowDefinition,
} from 'nestjs-cyclone';
import ts from 'typescript';
import { DataSource } from 'typeorm';
import { ROOT } from '../structure/source-files.js';
import { Applications } from './app.fixture.js';

const SECRET = 'top secret 4711';

/** Everything that JSON has, in places where a careless walk would lose it. */
const EVERYTHING = JSON.parse(
  `{"text":"${SECRET}","empty":"","number":-0.5,"yes":true,"no":false,"nothing":null,"list":[1,[],{},"ü",["x"]],` +
    `"__proto__":{"constructor":"${SECRET}"},"l":{"f":"a"},"o":1}`,
) as Record<string, unknown>;

class Card {
  @IsString() pan!: string;
}

@Injectable()
class Work {
  @Step() echo(input: unknown): unknown {
    return input;
  }
  @Step() seen(card: Card): { pan: string; instance: boolean } {
    return { pan: card.pan, instance: card instanceof Card };
  }
  @Step() async booked(input: unknown, ctx: StepContext): Promise<unknown> {
    await (await ctx.completionTx()).query('insert into booking values ($1)', [ctx.runId]);
    return input;
  }
}
const { echo, seen, booked } = stepsOf(Work);

@Workflow({ name: 'secretive' })
class Secretive implements WorkflowDefinition<unknown, unknown> {
  define(b: WorkflowBuilder, input: unknown) {
    const whole = b.step(echo, lit(input as Record<string, unknown>), { node: 'whole' });
    const card = b.step(seen, joined({ pan: from(whole as never, 'text' as never) as never }), { node: 'card' });
    return b.step(echo, joined({ whole: from(whole), card: from(card), note: lit({ l: SECRET, o: [SECRET] }) }), {
      node: 'end',
    });
  }
}

@Workflow({ name: 'booking' })
class Booking implements WorkflowDefinition<string, unknown> {
  define(b: WorkflowBuilder, input: string) {
    return b.step(booked, lit(input), { retry: { maxAttempts: 3 } });
  }
}

/** The codec of docs/payload-codec.md. */
let AesCodec: new (keys: Record<string, Buffer>, current: string) => PayloadCodec;
const KEYS = { k1: Buffer.alloc(32, 1), k2: Buffer.alloc(32, 2) };

let apps: Applications;
let folder: string;
beforeAll(async () => {
  apps = await Applications.create();
  await apps.sql('create table booking (run_id bigint primary key)');
  const page = readFileSync(join(ROOT, 'docs/payload-codec.md'), 'utf8');
  const [, source = ''] = /```ts\n(import .*?)```/s.exec(page) ?? [];
  const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ES2022 };
  const { outputText } = ts.transpileModule(source, { compilerOptions: options });
  folder = mkdtempSync(join(tmpdir(), 'cyclone-codec-'));
  writeFileSync(join(folder, 'codec.mjs'), outputText);
  ({ AesCodec } = (await import(pathToFileURL(join(folder, 'codec.mjs')).href)) as { AesCodec: typeof AesCodec });
});
afterEach(async () => {
  await apps.closeAll();
  await apps.sql('truncate cyclone_runs, cyclone_steps, cyclone_deps, cyclone_attempts, booking cascade');
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await apps.end();
});

async function start(codec: PayloadCodec, worker: boolean = true): Promise<INestApplicationContext> {
  return apps.start({
    providers: [Work, Secretive, Booking],
    cyclone: { codec, ...(worker ? {} : { worker: false }) },
  });
}

/** The same text whatever the order of the properties, and with those that are called `__proto__`. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );

const stored = async (): Promise<string> =>
  JSON.stringify(await apps.sql('select input, input_spec, output from cyclone_steps order by run_id, node'));

/** Changes leaves in ways of its own; all else stays. */
const codecOf = (
  encode: (leaf: PayloadLeaf, place: PayloadPlace) => unknown,
  decode: (leaf: PayloadLeaf, place: PayloadPlace) => unknown = (leaf) => leaf,
): PayloadCodec => ({ encode, decode }) as PayloadCodec;

describe('a codec that encrypts (R38)', () => {
  it('keeps every plain value out of the database, and handlers, DTO classes and results see nothing else', async () => {
    const app = await start(new AesCodec(KEYS, 'k1'));
    const run = await app.get(WorkflowClient).submit(Secretive, EVERYTHING);
    expect(canonical(await run.result())).toBe(
      canonical({
        whole: EVERYTHING,
        card: { pan: SECRET, instance: true },
        note: { l: SECRET, o: [SECRET] },
      }),
    );
    const text = await stored();
    expect(text).not.toContain('4711');
    expect(text).toContain('"list":["aes:k1:');
  });

  it('binds to the run and the node: a leaf that was moved discards its step for good, and putting it back brings the run home', async () => {
    const codec = new AesCodec(KEYS, 'k1');
    const client = (await start(codec, false)).get(WorkflowClient);
    const one = await client.submit(Booking, 'for one');
    const two = await client.submit(Booking, 'for two');
    const [{ input } = { input: null }] = await apps.sql('select input from cyclone_steps where run_id = $1', [two.id]);
    await apps.sql(
      'update cyclone_steps set input = (select input from cyclone_steps where run_id = $1) where run_id = $2',
      [one.id, two.id],
    );
    const app = await start(codec);
    expect(await one.result()).toBe('for one');
    await expect(two.result()).rejects.toMatchObject({
      errorKind: 'permanent',
      message: expect.stringContaining('codec'),
    });
    await apps.sql('update cyclone_steps set input = $1 where run_id = $2', [JSON.stringify(input), two.id]);
    await app.get(OperatorClient).retry(two.id, 'booked');
    expect(await two.result()).toBe('for two');
    expect(await apps.sql('select run_id from booking order by 1')).toEqual([{ run_id: one.id }, { run_id: two.id }]);
    await apps.sql('update cyclone_steps set output = input where run_id = $1', [one.id]);
    expect(await one.result()).toBe('for one');
    await apps.sql(
      `update cyclone_steps set output = (select output from cyclone_steps where run_id = $1) where run_id = $2`,
      [two.id, one.id],
    );
    await expect(one.result()).rejects.toMatchObject({ code: 'CYCLONE_PAYLOAD_CODEC', runId: one.id, node: 'booked' });
  });

  it('rotates its keys: what an old one encrypted is read as long as it is kept', async () => {
    const client = (await start(new AesCodec({ k1: KEYS.k1 }, 'k1'), false)).get(WorkflowClient);
    const run = await client.submit(Booking, SECRET);
    await start(new AesCodec(KEYS, 'k2'));
    await run.wait();
    expect(await stored()).toMatch(/aes:k1:.*aes:k2:/s);
  });
});

describe('submits with a codec', () => {
  it('know the place of every payload: the run that they give is the run that it is encoded for (R38)', async () => {
    const places: PayloadPlace[] = [];
    const app = await start(
      codecOf((leaf, place) => (places.push(place), leaf)),
      false,
    );
    const client = app.get(WorkflowClient);
    const alone = await client.submit(Booking, 'a');
    const many = await client.submitMany(Booking, ['b', 'c']);
    const once = await client.submitOnce(Booking, 'key', 'd');
    const again = await client.submitOnce(Booking, 'key', 'd');
    const job = await client.enqueue(echo, 'e');
    const mine = await app.get(DataSource).transaction((tx) => client.submit(Booking, 'f', { tx }));
    const runs = [alone, ...many, once, job, mine].map(({ id }) => id);
    expect([again.id, again.created]).toEqual([once.id, false]);
    expect(apps.logs.lines.filter((line) => line.includes('another input'))).toEqual([]);
    expect(places.filter(({ runId }) => runs.includes(runId)).map(({ runId }) => runId)).toEqual(runs);
    expect(new Set(places.map(({ node, part }) => `${node} ${part}`))).toEqual(new Set(['booked input', 'echo input']));
  });

  it('take part in the transaction of the caller, with its connection alone (R6)', async () => {
    const app = await start(
      codecOf((leaf) => leaf),
      false,
    );
    const client = app.get(WorkflowClient);
    const submits = Array.from({ length: 12 }, () =>
      app.get(DataSource).transaction(async (tx) => {
        await client.submit(Booking, 'x', { tx });
        throw new Error('undo');
      }),
    );
    for (const outcome of await Promise.allSettled(submits))
      expect(outcome).toMatchObject({ reason: { message: 'undo' } });
    expect(await apps.sql('select id from cyclone_runs')).toEqual([]);
  });

  it.each<[string, (leaf: PayloadLeaf) => unknown]>([
    ['throws', () => thrown(new Error('no key'))],
    ['rejects', () => Promise.reject(new Error('no key'))],
    [
      'throws after it has rejected',
      (leaf) => (leaf === 1 ? Promise.reject(new Error('no key')) : thrown(new Error('!'))),
    ],
    ['returns an object', () => ({})],
    ['returns nothing', () => undefined],
    ['returns NaN', () => Number.NaN],
    ['returns what Postgres cannot store', () => '\0'],
  ])('are refused when the codec %s, and nobody else is', async (_how, encode) => {
    const app = await start(
      codecOf((leaf) => (leaf === 'good' ? leaf : encode(leaf))),
      false,
    );
    const client = app.get(WorkflowClient);
    const [good, bad] = await Promise.allSettled([client.enqueue(echo, 'good'), client.enqueue(echo, [1, 2])]);
    expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'CYCLONE_PAYLOAD_CODEC', node: 'echo' } });
    expect(good.status).toBe('fulfilled');
    expect(await apps.sql('select count(*)::int as runs from cyclone_runs')).toEqual([{ runs: 1 }]);
  });
});

describe('an input as deep as it may be', () => {
  @Workflow({ name: 'deep' })
  class Deep implements WorkflowDefinition<string, unknown> {
    define(b: WorkflowBuilder, input: string) {
      const first = b.step(echo, lit(input), { node: 'first' });
      let shape: Record<string, unknown> = { bottom: from(first) };
      for (let level = 0; level < 60; level++) shape = { in: joined(shape as never) };
      return b.step(echo, joined({ ...shape, list: lit(JSON.parse(`${'['.repeat(98)}1${']'.repeat(98)}`) as never) }), {
        node: 'last',
      });
    }
  }

  it('is no deeper because a codec looks at it', async () => {
    const codec = codecOf((leaf) => leaf);
    const app = await apps.start({ providers: [Work, Deep], cyclone: { codec } });
    const run = await app.get(WorkflowClient).submit(Deep, 'x');
    expect(JSON.stringify(await run.result())).toContain('{"bottom":"x"}');
  });
});

describe('steps with a codec', () => {
  it('are discarded when their output cannot be encoded, with their completion transaction rolled back', async () => {
    const app = await start(codecOf((leaf, { part }) => (part === 'output' ? thrown(new Error('no key')) : leaf)));
    const run = await app.get(WorkflowClient).submit(Booking, 'x');
    await expect(run.result()).rejects.toMatchObject({
      errorKind: 'permanent',
      message: expect.stringContaining('no key'),
    });
    expect(await apps.sql('select * from booking')).toEqual([]);
  });

  it('take nothing more from a handler that has returned, while their output is encoded (R14)', async () => {
    let late: Promise<unknown> = Promise.resolve();
    @Injectable()
    class Hasty {
      @Step() async hasty(_input: string, ctx: StepContext): Promise<string> {
        const tx = await ctx.completionTx();
        await tx.query('insert into booking values ($1)', [ctx.runId]);
        late = encoding.then(() => Promise.allSettled([ctx.completionTx(), tx.query('delete from booking')]));
        return 'done';
      }
    }
    let begun: () => void = () => undefined;
    const encoding = new Promise<void>((resolve) => (begun = resolve));
    const codec = codecOf(async (leaf, { part }) => {
      if (part === 'output') {
        begun();
        await late;
      }
      return leaf;
    });
    const app = await apps.start({ providers: [Hasty], cyclone: { codec } });
    const run = await app.get(WorkflowClient).enqueue(stepsOf(Hasty).hasty, 'x');
    expect(await run.result()).toBe('done');
    const refused = { status: 'rejected', reason: { code: 'CYCLONE_COMPLETION_TRANSACTION', problem: 'closed' } };
    expect(await late).toMatchObject([refused, refused]);
    expect(await apps.sql('select run_id from booking')).toEqual([{ run_id: run.id }]);
  });

  it('get another attempt where the codec asks for it with RetryAfterError', async () => {
    const tried: string[] = [];
    const late = (leaf: PayloadLeaf, { part }: PayloadPlace, how: string) => {
      tried.push(`${how} ${part}`);
      if (tried.filter((one) => one === `${how} ${part}`).length === 1) throw new RetryAfterError(0);
      return leaf;
    };
    const app = await start(
      codecOf(
        (leaf, place) => (place.part === 'output' ? late(leaf, place, 'encode') : leaf),
        (leaf, place) => (place.part === 'input' ? late(leaf, place, 'decode') : leaf),
      ),
    );
    const run = await app.get(WorkflowClient).submit(Booking, 'x');
    expect(await run.result()).toBe('x');
    expect(tried).toEqual(['decode input', 'decode input', 'encode output', 'decode input', 'encode output']);
    expect(await apps.sql('select count(*)::int from booking')).toEqual([{ count: 1 }]);
  });
});

it('is refused at the start when it is no codec (R22)', async () => {
  for (const codec of [null, {}, { encode: () => 1 }, 'aes'] as never[]) {
    const error = await apps.refusal({ cyclone: { codec } });
    expect(String(error)).toContain('encode and decode');
  }
});

function thrown(error: Error): never {
  throw error;
}
