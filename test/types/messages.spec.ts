import { compile, type Complaint } from '../support/compiler.js';

/** What every mistake below is made with. */
const PRELUDE = `
import { Action, Step, StepContext, Workflow, WorkflowBuilder, WorkflowClient, from, join, lit, stepsOf, type WorkflowDefinition } from 'nestjs-cyclone';
interface Order { id: string; to: { city: { zip: string } }; lines: string[]; note?: string }
interface User { id: string; at: Date }
class Handlers {
  @Step() async validate(order: Order): Promise<Order> { return order; }
  @Step() async text(text: string): Promise<string> { return text; }
  @Step() async find(id: string): Promise<Order | undefined> { return undefined; }
  @Step() async user(id: string): Promise<User> { return { id, at: new Date() }; }
  @Step() async noInput(): Promise<string> { return ''; }
  @Step() async nullable(note: string | null, ctx: StepContext): Promise<string> { return note ?? ctx.runId; }
  @Action() async mail(order: Order): Promise<void> { void order; }
  @Action() async ping(): Promise<void> {}
}
@Workflow({ name: 'nothing' }) class TakesNothing { define(b: WorkflowBuilder) { return b.step(h.noInput); } }
@Workflow({ name: 'order' }) class TakesOrder { define(b: WorkflowBuilder, order: Order) { b.step(h.validate, lit(order)); } }
const h = stepsOf(Handlers);
declare const b: WorkflowBuilder;
declare const client: WorkflowClient;
declare const order: Order;
const valid = b.step(h.validate, lit(order));
const found = b.step(h.find, lit('1'));
const sent = b.action(h.ping);
`;

/** What must compile. */
const FINE = {
  'a handler without input': 'b.step(h.noInput); b.action(h.ping); b.step(h.noInput, lit(null)); b.step(h.nullable);',
  'options without input':
    'b.step(h.noInput, undefined, { after: valid }); b.action(h.ping, undefined, { node: "x" });',
  'a job without input':
    'client.enqueue(h.noInput); client.enqueue(h.ping); client.enqueue(h.nullable, undefined, { delay: "5m" }); client.enqueueMany(h.noInput, [null, undefined]);',
  'a workflow without input':
    'client.submit(TakesNothing); client.submitOnce(TakesNothing, "key"); client.submit(TakesNothing, undefined, { delay: "5m" });',
  'a node in place of a list':
    'b.step(h.noInput, undefined, { after: sent }); b.step(h.noInput, undefined, { after: [valid, sent] });',
  'a key of a nullable output': 'b.step(h.nullable, from(found, "id")); b.step(h.nullable, from(valid, "note"));',
  'a key below keys':
    'b.step(h.text, from(valid, "to", "city", "zip")); b.step(h.nullable, from(found, "to", "city", "zip"));',
  'a workflow named by what its last step returns':
    'class W implements WorkflowDefinition<string, User> { define(builder: WorkflowBuilder, id: string) { return builder.step(h.user, lit(id)); } }\n' +
    'const at: Promise<string> = client.submit(W, "1").then((run) => run.result()).then((user) => user.at);',
  'a generic class whose subclass names the types':
    'abstract class Base<T> { protected async work(input: T): Promise<T> { return input; } }\n' +
    'class Sub extends Base<Order> { @Step() async work2(input: Order): Promise<Order> { return this.work(input); } }',
};

/** What must not compile, and the words that say what to do. */
const MISTAKES: Record<string, [code: string, ...words: string[]]> = {
  'a bare value': ['b.step(h.validate, order);', '✖ a bare value is no input: wrap it in lit(value)'],
  'a bare text': ['b.step(h.text, "x");', '✖ a bare value is no input: wrap it in lit(value)'],
  'a node without from': ['b.step(h.validate, valid);', '✖ a node is no input: read its output with from(node)'],
  'an action as input': ['b.step(h.validate, sent);', '✖ an action has no output to read: name it in the option after'],
  'inputs without join': [
    'b.step(h.validate, { id: lit("1") });',
    '✖ inputs in an object or a list: wrap it in join()',
  ],
  'an input that is forgotten': [
    'b.step(h.validate);',
    '✖ this handler takes an input: pass lit(value), from(node) or join({ … })',
  ],
  'an input that is undefined': ['b.action(h.mail, undefined);', '✖ this handler takes an input'],
  'from() of an action': ['from(sent);', '✖ an output; an action has none'],
  'an action as result': [
    'class W implements WorkflowDefinition<string, string> { define(builder: WorkflowBuilder) { return builder.action(h.ping); } }',
    '✖ an output; an action has none',
  ],
  'a bare value in a join': [
    'join({ id: "1", all: from(valid) });',
    '✖ a bare value is no input: wrap it in lit(value)',
  ],
  'a node in a join': ['join({ a: { b: [valid] } });', '✖ a node is no input: read its output with from(node)'],
  'an action in a join': ['join([sent]);', '✖ an action has no output to read: name it in the option after'],
  'an action added as a step': ['b.step(h.mail, lit(order));', '✖ a step; add an action with builder.action()'],
  'a step added as an action': ['b.action(h.validate, lit(order));', '✖ an action; add a step with builder.step()'],
  'a key that is not there': ['from(valid, "idd");', '"idd"', '"id" | "to" | "lines" | "note"'],
  'a key below a key that is not there': ['from(valid, "to", "citty");', '"citty"', '"city"'],
  'a key of a list': [
    'from(valid, "lines", "length");',
    '✖ no keys are known of this value: read it whole, without a key',
  ],
  'a key of a text': ['from(b.step(h.text, lit("x")), "length");', '✖ no keys are known of this value'],
  'a key that may be missing': [
    'b.step(h.text, from(found, "id"));',
    "Type 'undefined' is not assignable to type 'string'",
  ],
  'an output that does not fit': ['b.step(h.text, from(valid));', "Type 'Order' is not assignable to type 'string'"],
  'a job without its input': ['void client.enqueue(h.mail);', '✖ this handler takes an input: pass it'],
  'a run without its input': ['void client.submit(TakesOrder);', '✖ this workflow takes an input: pass it'],
  'a keyed run without its input': [
    'void client.submitOnce(TakesOrder, "k");',
    '✖ this workflow takes an input: pass it',
  ],
  'a generic class': [
    'abstract class Base<T> { @Step() async work(input: T): Promise<T> { return input; } }',
    '✖ not with a type parameter of the class: decorate a method of the subclass, where the types are known',
  ],
  'a generic class with a bound': [
    'abstract class Base<T extends { id: string }> { @Action() work(input: T): void { void input; } }',
    '✖ not with a type parameter of the class',
  ],
  'a generic output': [
    'abstract class Base<T> { @Step() abstract_(id: string): T { return id as T; } }',
    '✖ not with a type parameter of the class',
  ],
  'a generic method': [
    'class Some { @Step() async work<T>(input: T): Promise<T> { return input; } }',
    '✖ a handler has one signature: no overloads and no type parameters of its own',
  ],
  overloads: [
    'class Some { work(i: string): string; work(i: number): number; @Step() work(i: string | number): string | number { return i; } }',
    '✖ a handler has one signature: no overloads and no type parameters of its own',
  ],
  'an optional input': [
    'class Some { @Step() work(input?: string): string { return input ?? ""; } }',
    '✖ an input is never undefined: JSON has null, so write null in its place',
  ],
  'a step without output': [
    'class Some { @Step() work(input: string): void { void input; } }',
    '✖ @Step() must return a value; use @Action()',
  ],
  'a Date as input': [
    'class Some { @Step() work(input: { at: Date }): string { return String(input.at); } }',
    '✖ the input does not survive JSON; name its DTO class in { input: … } to revive it',
  ],
};

const nameOf = (title: string): string => `test/types/${title.replaceAll(/\W+/g, '-')}.ts`;
let complaints: Record<string, Complaint[]>;
beforeAll(() => {
  const codes = [...Object.entries(FINE), ...Object.entries(MISTAKES).map(([title, [code]]) => [title, code] as const)];
  complaints = compile(Object.fromEntries(codes.map(([title, code]) => [nameOf(title), `${PRELUDE}${code}\n`])));
});
/** Without the escapes that the compiler writes into some of its texts. */
const readable = (text: string): string =>
  text.replaceAll(/\\u([\da-f]{4})/gi, (_, code: string) => String.fromCodePoint(Number.parseInt(code, 16)));
const said = (title: string): string => readable((complaints[nameOf(title)] ?? []).map(({ text }) => text).join('\n'));

describe('types (F35)', () => {
  it.each(Object.keys(FINE))('accept %s', (title) => {
    expect(said(title)).toBe('');
  });

  it.each(Object.entries(MISTAKES))('say of %s what is wrong and what to write', (title, [, ...words]) => {
    for (const word of words) expect(said(title)).toContain(word);
  });

  it('name no internal symbol', () => {
    expect(Object.keys(MISTAKES).filter((title) => /\[(VALUE|IN|OUT)\]|type 'never'/.test(said(title)))).toEqual([]);
  });
});
