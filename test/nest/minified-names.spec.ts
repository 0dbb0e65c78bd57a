import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { INestApplicationContext, Type } from '@nestjs/common';
import { buildSync } from 'esbuild';
import { looksMinified } from '#cyclone/model/minified-name.js';
import {
  CycloneError,
  getOperatorClientToken,
  getWorkerPoolToken,
  getWorkflowClientToken,
  StartupError,
  WorkflowClient,
  type WorkflowDefinition,
} from 'nestjs-cyclone';
import { ROOT } from '../structure/source-files.js';
import { Applications } from './app.fixture.js';

/** An application whose classes may stand in any order. `{…}` is what a decorator says. */
const CLASSES: Readonly<Record<string, string>> = {
  Charging: `@Injectable() export class Charging { @Step({place}) charge(order) { return 'charged ' + order; } }`,
  Refunding: `@Injectable() export class Refunding { @Step({cancel}) refund(order) { return 'refunded ' + order; } }`,
  PlaceOrder: `@Workflow({placeOrder}) export class PlaceOrder { define(b, order) { return b.step(stepsOf(Charging).charge, lit(order)); } }`,
  CancelOrder: `@Workflow({cancelOrder}) export class CancelOrder { define(b, order) { return b.step(stepsOf(Refunding).refund, lit(order)); } }`,
};
const ONE_ORDER = ['Charging', 'Refunding', 'PlaceOrder', 'CancelOrder'];
const ANOTHER = ['Refunding', 'Charging', 'CancelOrder', 'PlaceOrder'];
const NAMES = { placeOrder: `{ name: 'place_order' }`, cancelOrder: `{ name: 'cancel_order' }` };

type OrderWorkflow = Type<WorkflowDefinition<string, string>>;
interface Build {
  readonly Charging: Type;
  readonly Refunding: Type;
  readonly PlaceOrder: OrderWorkflow;
  readonly CancelOrder: OrderWorkflow;
}

let apps: Applications;
let folder: string;
beforeAll(async () => {
  apps = await Applications.create();
  const cache = join(ROOT, 'node_modules/.cache');
  mkdirSync(cache, { recursive: true });
  folder = mkdtempSync(join(cache, 'minified-')); // where imports of packages find them
});
afterEach(() => apps.closeAll());
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await apps.end();
});

/** Builds the application as one minified file, and loads it. */
async function build(
  order: readonly string[],
  says: Readonly<Record<string, string>>,
  mangleProps?: RegExp,
): Promise<Build> {
  const source = join(folder, `${order.join('')}.ts`);
  const file = join(folder, `${crypto.randomUUID()}.mjs`);
  const classes = order.map((name) => CLASSES[name]?.replaceAll(/\{(\w+)\}/g, (_, part: string) => says[part] ?? ''));
  writeFileSync(
    source,
    [
      `import { Injectable } from '@nestjs/common';`,
      `import { Step, Workflow, lit, stepsOf } from 'nestjs-cyclone';`,
      ...classes,
    ].join('\n'),
  );
  buildSync({
    entryPoints: [source],
    outfile: file,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    tsconfigRaw: { compilerOptions: { experimentalDecorators: true } },
    ...(mangleProps ? { mangleProps } : {}),
  });
  return (await import(file)) as Build;
}

const providersOf = ({ Charging, Refunding, PlaceOrder, CancelOrder }: Build): Type[] => [
  Charging,
  Refunding,
  PlaceOrder,
  CancelOrder,
];
const start = (built: Build, worker?: false): Promise<INestApplicationContext> =>
  apps.start({ providers: providersOf(built), ...(worker === false ? { cyclone: { worker } } : {}) });

const problemsOf = (error: unknown): string[] =>
  (StartupError.is(error) ? error.problems : [error as CycloneError]).map(({ message }) => message);

describe('an application that esbuild has minified, in two builds with its classes in another order (R40, F2)', () => {
  it('gives the same runs where names are given', async () => {
    const [first, second] = [await build(ONE_ORDER, NAMES), await build(ANOTHER, NAMES)];
    // The danger is real: the builds call the classes otherwise.
    expect(looksMinified(first.PlaceOrder.name)).toBe(true);
    expect([first.PlaceOrder.name, first.CancelOrder.name]).not.toEqual([
      second.PlaceOrder.name,
      second.CancelOrder.name,
    ]);

    const submitter = (await start(first, false)).get(WorkflowClient);
    const placed = await submitter.submitOnce(first.PlaceOrder, '4711', 'A');

    const client = (await start(second)).get(WorkflowClient);
    const cancelled = await client.submitOnce(second.CancelOrder, '4711', 'A');
    const again = await client.submitOnce(second.PlaceOrder, '4711', 'A');
    expect([cancelled.created, again.created, again.id]).toEqual([true, false, placed.id]);
    expect(await cancelled.result()).toBe('refunded A');
    expect(await again.result()).toBe('charged A');
    const kinds = await apps.sql('select distinct kind from cyclone_steps order by 1');
    expect(kinds).toEqual([{ kind: 'charge' }, { kind: 'refund' }]);
  });

  it('does not start where workflows have no names, and says what to write', async () => {
    for (const order of [ONE_ORDER, ANOTHER]) {
      const built = await build(order, {});
      const error = await apps.refusal({ providers: providersOf(built) });
      expect(problemsOf(error)).toEqual(
        [built.PlaceOrder, built.CancelOrder].map(({ name }) =>
          expect.stringMatching(
            new RegExp(`name of ${name.replaceAll('$', '\\$')} is missing.*@Workflow\\(\\{ name: 'place_order' \\}\\)`),
          ),
        ),
      );
    }
  });

  it('does not start where a name is that of the minified class', async () => {
    const built = await build(ONE_ORDER, NAMES);
    const { Workflow } = await import('nestjs-cyclone');
    Workflow({ name: built.PlaceOrder.name })(built.PlaceOrder);
    const error = await apps.refusal({ providers: providersOf(built) });
    expect(problemsOf(error)).toEqual([expect.stringMatching(/that of the class, as if a build tool had renamed it/)]);
  });

  it('does not start where it renames methods, unless the kinds are given', async () => {
    const mangle = /^(charge|refund)$/;
    const built = await build(ONE_ORDER, NAMES, mangle);
    const error = await apps.refusal({ providers: providersOf(built) });
    expect(problemsOf(error)).toHaveLength(2);
    expect(problemsOf(error)[0]).toMatch(
      /name of \S+ is missing, and its method is called "\w".*@Step\({ name: 'charge_card' }\)/,
    );
    // A process that serves none of them submits nothing either.
    const { PlaceOrder } = built;
    const client = (await apps.start({ providers: [PlaceOrder], cyclone: { worker: false } })).get(WorkflowClient);
    await expect(client.submit(PlaceOrder, 'A')).rejects.toThrow(/has a handler, .* whose name is missing/);

    const given = { ...NAMES, place: `{ name: 'charge' }`, cancel: `{ name: 'refund' }` };
    const named = await build(ONE_ORDER, given, mangle);
    const run = await (await start(named)).get(WorkflowClient).submit(named.PlaceOrder, 'B');
    expect(await run.result()).toBe('charged B');
  });
});

it('the tokens of a named Cyclone do not depend on the names of classes (R40)', () => {
  expect([getWorkflowClientToken('a'), getOperatorClientToken('a'), getWorkerPoolToken('a')]).toEqual([
    'aCycloneWorkflowClient',
    'aCycloneOperatorClient',
    'aCycloneWorkerPool',
  ]);
});
