import { Action } from '../nest/decorators/action.decorator.js';
import { Step } from '../nest/decorators/step.decorator.js';
import { buildPlan, standalonePlan } from './build-plan.js';
import { WorkflowBuilder } from './builder.js';
import type { Node, StepNode } from './handle.js';
import { from, join, lit, type Input } from './inputs.js';
import { PlanContext } from './plan-context.js';
import type { RunPlan } from './plan.js';
import { stepsOf } from './steps-of.js';

class Handlers {
  @Step() one(value: unknown): { id: string; total: number; lines: string[] } {
    return { id: String(value), total: 1, lines: [] };
  }
  @Step({ queue: 'slow', priority: 3, timeout: '30s', retry: { maxAttempts: 7 }, retention: '1d' })
  two(value: unknown): unknown {
    return value;
  }
  @Action() act(value: unknown): void {
    void value;
  }
  @Step({ name: 'bad[name]' }) badName(value: unknown): unknown {
    return value;
  }
  @Step({ retry: { maxAttempts: 0 } }) badOption(value: unknown): unknown {
    return value;
  }
}
const h = stepsOf(Handlers);
const context = new PlanContext();
const plan = (define: (b: WorkflowBuilder) => unknown, at = context): RunPlan => buildPlan(at, 'wf', define);
const nodeOf = (run: RunPlan, name: string) => run.nodes.find((node) => node.node === name);
const invalidGraph = (node: string | undefined, message: string | RegExp) =>
  expect.objectContaining({
    code: 'CYCLONE_INVALID_GRAPH',
    workflow: 'wf',
    ...(node === undefined ? {} : { node }),
    message: typeof message === 'string' ? expect.stringContaining(message) : expect.stringMatching(message),
  });

describe('a plan', () => {
  it('holds nodes, edges and the result node as plain data for the database (R1, R3)', () => {
    const run = plan((b) => {
      const one = b.step(h.one, lit({ a: 1 }));
      const two = b.step(h.two, from(one), { after: [one] });
      b.action(h.act, join({ id: from(one, 'id'), all: from(two) }), { node: 'last' });
      return two;
    });
    expect(run.workflow).toBe('wf');
    expect(run.resultNode).toBe('two');
    expect(run.deps).toEqual([
      ['two', 'one'],
      ['last', 'one'],
      ['last', 'two'],
    ]);
    expect(run.nodes.map((node) => ({ ...node, handler: node.handler.owner }))).toEqual([
      {
        node: 'one',
        nodeType: 'step',
        kind: 'one',
        queue: 'default',
        priority: 0,
        inputJson: '{"a":1}',
        inputSpec: null,
        openDeps: 0,
        dependents: 2,
        maxAttempts: 5,
        policyJson: null,
        handler: 'Handlers.one',
      },
      {
        node: 'two',
        nodeType: 'step',
        kind: 'two',
        queue: 'slow',
        priority: 3,
        inputJson: null,
        inputSpec: '{"f":"one"}',
        openDeps: 1,
        dependents: 1,
        maxAttempts: 7,
        policyJson: '{"timeoutMs":30000,"retentionMs":86400000}',
        handler: 'Handlers.two',
      },
      {
        node: 'last',
        nodeType: 'action',
        kind: 'act',
        queue: 'default',
        priority: 0,
        inputJson: null,
        inputSpec: '{"o":{"id":{"f":"one","k":["id"]},"all":{"f":"two"}}}',
        openDeps: 2,
        dependents: 0,
        maxAttempts: 5,
        policyJson: null,
        handler: 'Handlers.act',
      },
    ]);
  });

  it('has no result node when define returns nothing', () => {
    expect(plan((b) => void b.step(h.one, lit(1))).resultNode).toBeNull();
  });

  it('takes options of the node over submit, these over the handler, these over the module (R9)', () => {
    const at = new PlanContext({
      queue: 'module',
      priority: 9,
      retry: { maxAttempts: 9, backoff: { type: 'fixed', delay: '9s' } },
    });
    const define = (b: WorkflowBuilder): void => {
      b.step(h.one, lit(1));
      b.step(h.two, lit(1));
      b.step(h.two, lit(1), {
        node: 'three',
        queue: 'node',
        timeout: '1s',
        retry: { backoff: { type: 'exponential', base: '1s' } },
        onDepFailure: 'cancel_branch',
      });
    };
    const run = buildPlan(at, 'wf', define, { priority: 1, queue: 'submit' });
    expect(nodeOf(run, 'one')).toMatchObject({ queue: 'submit', priority: 1, maxAttempts: 9 });
    expect(nodeOf(run, 'two')).toMatchObject({ queue: 'submit', priority: 1, maxAttempts: 7 });
    expect(nodeOf(run, 'three')).toMatchObject({ queue: 'node', priority: 1, maxAttempts: 7 });
    expect(nodeOf(buildPlan(at, 'wf', define), 'one')).toMatchObject({ queue: 'module', priority: 9 });
    expect(nodeOf(buildPlan(at, 'wf', define), 'two')).toMatchObject({ queue: 'slow', priority: 3 });
    expect(JSON.parse(nodeOf(run, 'three')?.policyJson ?? '')).toEqual({
      onDepFailure: 'cancel_branch',
      backoff: { baseMs: 1_000, factor: 2, maxMs: 3_600_000, jitter: true },
      timeoutMs: 1_000,
      retentionMs: 86_400_000,
    });
  });

  it('is the same for the same input, and counts each edge once', () => {
    const define = (b: WorkflowBuilder): StepNode<unknown> => {
      const one = b.step(h.one, lit(1));
      return b.step(h.two, join([from(one), from(one, 'id'), { again: from(one) }]), { after: [one, one] });
    };
    expect(plan(define)).toEqual(plan(define));
    expect(plan(define).deps).toEqual([['two', 'one']]);
    expect(nodeOf(plan(define), 'two')?.openDeps).toBe(1);
  });

  it('may have 10,000 nodes by default and 100,000 edges', () => {
    const run = plan((b) => {
      let last: StepNode<unknown> = b.step(h.two, lit(0), { node: 'n0' });
      for (let i = 1; i < 10_000; i++) last = b.step(h.two, from(last), { node: `n${i}` });
      return last;
    });
    expect(run.nodes).toHaveLength(10_000);
    expect(run.deps).toHaveLength(9_999);
  });
});

describe('an input', () => {
  const compile = (input: (one: StepNode<{ id: string; total: number; lines: string[] }>) => unknown) => {
    const run = plan((b) => {
      const one = b.step(h.one, lit(1));
      b.step(h.two, input(one) as never);
    });
    const { inputJson: json, inputSpec } = nodeOf(run, 'two') as RunPlan['nodes'][number];
    return {
      json: json && (JSON.parse(json) as unknown),
      spec: inputSpec && (JSON.parse(inputSpec) as unknown),
    };
  };

  it('of literals only is resolved at submit, joins included (R4)', () => {
    expect(compile(() => join({ a: lit(1), b: [lit('x'), { c: lit(null) }] }))).toEqual({
      json: { a: 1, b: ['x', { c: null }] },
      spec: null,
    });
  });

  it('that mixes both tells the database how to make it (R4)', () => {
    expect(
      compile((one) => join({ a: { b: from(one, 'id'), c: [lit(1), from(one)] }, d: lit({ e: 2 }), f: [] })),
    ).toEqual({
      json: null,
      spec: {
        o: {
          a: { o: { b: { f: 'one', k: ['id'] }, c: { a: [{ l: 1 }, { f: 'one' }] } } },
          d: { l: { e: 2 } },
          f: { l: [] },
        },
      },
    });
  });

  it('leaves an undefined literal out of an object; it is null alone and in a list (R36)', () => {
    expect(compile(() => lit(undefined)).json).toBeNull();
    expect(compile((one) => join({ a: lit(undefined), b: from(one) })).spec).toEqual({ o: { b: { f: 'one' } } });
    expect(compile((one) => join([lit(undefined), from(one)])).spec).toEqual({ a: [{ l: null }, { f: 'one' }] });
  });

  it('keeps keys called __proto__, o, f and l apart from the format (R36)', () => {
    const hostile: unknown = JSON.parse('{"__proto__":{"f":"one"},"o":1,"l":2}');
    expect(compile((one) => join({ literal: lit(hostile), f: from(one, 'id'), o: lit(1) })).spec).toEqual({
      o: { literal: { l: hostile }, f: { f: 'one', k: ['id'] }, o: { l: 1 } },
    });
  });

  it('quotes the names of nodes and keys', () => {
    const run = plan((b) => {
      const one = b.step(h.one, lit(1), { node: 'a "b" \\ é' });
      b.step(h.two, from(one as StepNode<Record<string, unknown>>, 'k"ey'));
    });
    expect(JSON.parse(nodeOf(run, 'two')?.inputSpec ?? '')).toEqual({ f: 'a "b" \\ é', k: ['k"ey'] });
  });

  it('F35: reads below several keys, which the database follows (R4)', () => {
    const run = plan((b) => {
      const one = b.step(h.one, lit(1)) as StepNode<{ to?: { city: { zip: string } } }>;
      b.step(h.two, from(one, 'to', 'city', 'zip'));
    });
    expect(JSON.parse(nodeOf(run, 'two')?.inputSpec ?? '')).toEqual({ f: 'one', k: ['to', 'city', 'zip'] });
  });

  it('F35: needs no argument, which the handler gets as null', () => {
    const run = plan((b) => {
      const one = b.step(h.one);
      b.step(h.two, undefined, { after: one });
    });
    expect(run.nodes.map(({ inputJson, inputSpec }) => [inputJson, inputSpec])).toEqual([
      ['null', null],
      ['null', null],
    ]);
    expect(run.deps).toEqual([['two', 'one']]);
  });

  it('is stored as it was when the node was added', () => {
    const value = { list: [1] };
    const run = plan((b) => {
      b.step(h.one, lit(value));
      value.list.push(2);
    });
    expect(nodeOf(run, 'one')?.inputJson).toBe('{"list":[1]}');
  });
});

describe('a graph is refused before anything is written (R3)', () => {
  const other = new WorkflowBuilder();
  const foreign = other.step(h.one, lit(1));

  it.each<[string, string | undefined, string | RegExp, (b: WorkflowBuilder) => unknown]>([
    ['is empty', undefined, 'empty', () => undefined],
    ['has two nodes of one name', 'one', 'is there already', (b) => [b.step(h.one, lit(1)), b.step(h.one, lit(1))]],
    ['has a name with brackets', 'a[0]', '[ or ]', (b) => b.step(h.one, lit(1), { node: 'a[0]' })],
    ['has a kind with brackets as name', 'bad[name]', '[ or ]', (b) => b.step(h.badName, lit(1))],
    ['has an empty name', '', 'no name', (b) => b.step(h.one, lit(1), { node: '' })],
    [
      'has a name over 512 bytes',
      'é'.repeat(257),
      '512 bytes',
      (b) => b.step(h.one, lit(1), { node: 'é'.repeat(257) }),
    ],
    [
      'has a name of a million characters',
      'x'.repeat(1e6),
      '512 bytes',
      (b) => b.step(h.one, lit(1), { node: 'x'.repeat(1e6) }),
    ],
    ['has a name that cannot be stored', 'a\u0000', 'cannot store', (b) => b.step(h.one, lit(1), { node: 'a\u0000' })],
    [
      'has a name that is half a character',
      'a\ud83d',
      'cannot store',
      (b) => b.step(h.one, lit(1), { node: 'a\ud83d' }),
    ],
    ['reads a node of another graph', 'two', 'another graph', (b) => b.step(h.two, from(foreign))],
    ['waits for a node of another graph', 'two', 'another graph', (b) => b.step(h.two, lit(1), { after: [foreign] })],
    ['returns a node of another graph', 'one', 'another graph', (b) => (b.step(h.two, lit(1)), foreign)],
    ['reads an action', 'two', 'an action has no output', (b) => b.step(h.two, from(b.action(h.act, lit(1)) as never))],
    ['returns an action', 'act', 'an action has no output', (b) => b.action(h.act, lit(1))],
    ['returns something else', undefined, 'a step of its graph', (b) => (b.step(h.one, lit(1)), 'one')],
    [
      'reads a key that is no text',
      'two',
      'no text but undefined (at input)',
      (b) => b.step(h.two, from(b.step(h.one, lit(1)) as StepNode<{ id: string }>, undefined as never)),
    ],
    [
      'reads a key below a key that is no text',
      'two',
      'no text but number (at input.x)',
      (b) => b.step(h.two, join({ x: (from as (...all: unknown[]) => Input<never>)(b.step(h.one, lit(1)), 'id', 0) })),
    ],
    ['reads something that is no node', 'two', 'no node', (b) => b.step(h.two, from({ node: 'one' } as never))],
    [
      'waits for something that is no node',
      'two',
      'no node',
      (b) => b.step(h.two, lit(1), { after: ['one' as never] }),
    ],
    [
      'has a handle of no decorated method',
      'x',
      '@Step() or @Action()',
      (b) => b.step({ kind: 'x' } as never, lit(1), { node: 'x' }),
    ],
    ['has no handle at all', '(unnamed)', '@Step() or @Action()', (b) => b.step(undefined as never, lit(1))],
    ['adds an action as a step', 'act', 'builder.action()', (b) => b.step(h.act as never, lit(1))],
    ['adds a step as an action', 'one', 'builder.step()', (b) => b.action(h.one as never, lit(1))],
    ['has a bare value as input', 'one', 'Wrap it in lit()', (b) => b.step(h.one, 5 as never)],
    ['has a bare value inside a join', 'one', 'input.a[1]', (b) => b.step(h.one, join({ a: [lit(1), 5 as never] }))],
    ['has an unknown policy', 'one', 'onDepFailure', (b) => b.step(h.one, lit(1), { onDepFailure: 'ignore' as never })],
    ['has an asynchronous define', undefined, 'returned a promise', async (b) => b.step(h.one, lit(1))],
  ])('when it %s', (_name, node, message, define) => {
    expect(() => plan(define)).toThrow(invalidGraph(node, message));
  });

  it('when it has more nodes than the limit', () => {
    const small = new PlanContext({}, { maxNodes: 2 });
    const define = (b: WorkflowBuilder): unknown => ['a', 'b', 'c'].map((node) => b.step(h.one, lit(1), { node }));
    expect(() => plan(define, small)).toThrow(invalidGraph('c', 'at most 2 nodes'));
  });

  it('when it has more than 100,000 edges', () => {
    expect(() =>
      plan((b) => {
        const upstream: Node[] = Array.from({ length: 1_001 }, (_, i) => b.step(h.one, lit(1), { node: `up${i}` }));
        for (let i = 0; i < 100; i++) b.step(h.one, lit(1), { node: `down${i}`, after: upstream });
      }),
    ).toThrow(invalidGraph('down99', 'over 100000 edges'));
  });

  it('when a define that returned goes on', () => {
    let kept: WorkflowBuilder | undefined;
    plan((b) => {
      kept = b;
      b.step(h.one, lit(1));
    });
    expect(() => kept?.step(h.two, lit(1))).toThrow(invalidGraph(undefined, 'can no longer grow'));
  });

  it('when an asynchronous define rejects, without an unhandled rejection', async () => {
    const define = async (b: WorkflowBuilder): Promise<void> => {
      b.step(h.one, lit(1));
      await Promise.reject(new Error('late'));
    };
    expect(() => plan(define)).toThrow(invalidGraph(undefined, 'returned a promise'));
    await new Promise((resolve) => setImmediate(resolve)); // Jest fails the file on an unhandled rejection
  });

  it('when a literal cannot be stored, with its node and path (R36)', () => {
    expect(() => plan((b) => b.step(h.one, lit({ a: [1n] } as never)))).toThrow(
      expect.objectContaining({ code: 'CYCLONE_INVALID_PAYLOAD', node: 'one', path: 'input.a[0]' }),
    );
    expect(() => plan((b) => b.step(h.one, join({ x: { y: lit(NaN) } })))).toThrow(
      expect.objectContaining({ code: 'CYCLONE_INVALID_PAYLOAD', node: 'one', path: 'input.x.y' }),
    );
    expect(() => plan((b) => b.step(h.one, join({ 'a\u0000': lit(1) })))).toThrow(
      expect.objectContaining({ code: 'CYCLONE_INVALID_PAYLOAD', node: 'one' }),
    );
  });

  it('when an input is too large, alone or in sum (R36)', () => {
    const small = new PlanContext({}, { maxPayloadBytes: 100 });
    const tooLarge = expect.objectContaining({ code: 'CYCLONE_PAYLOAD_TOO_LARGE', node: 'one', maxBytes: 100 });
    expect(() => plan((b) => b.step(h.one, lit('x'.repeat(99))), small)).toThrow(tooLarge);
    expect(() => plan((b) => b.step(h.one, join([lit('x'.repeat(50)), lit('x'.repeat(50))])), small)).toThrow(tooLarge);
  });

  it('when a join is too deep, or refers back to itself (R36)', () => {
    const deep = (levels: number): never => {
      let shape: unknown = lit(1);
      for (let level = 0; level < levels; level++) shape = [shape];
      return shape as never;
    };
    expect(() => plan((b) => b.step(h.one, join(deep(101))))).toThrow(
      expect.objectContaining({ code: 'CYCLONE_INVALID_PAYLOAD', node: 'one' }),
    );
    expect(plan((b) => b.step(h.one, join(deep(100)))).nodes).toHaveLength(1);
    const cyclic: unknown[] = [];
    cyclic.push(cyclic);
    expect(() => plan((b) => b.step(h.one, join(cyclic as never)))).toThrow(
      expect.objectContaining({ code: 'CYCLONE_INVALID_PAYLOAD' }),
    );
  });

  it('when an option makes no sense, naming the node or the handler (R22)', () => {
    expect(() => plan((b) => b.step(h.one, lit(1), { timeout: -1 }))).toThrow('The option timeout of node "one"');
    const retry = { backoff: () => '1s' } as never;
    expect(() => plan((b) => b.step(h.one, lit(1), { retry }))).toThrow(
      'retry.backoff of node "one" must not be a function',
    );
    expect(() => plan((b) => b.step(h.badOption, lit(1)))).toThrow('retry.maxAttempts of Handlers.badOption');
    expect(() => new PlanContext({ queue: '' })).toThrow('queue of defaults');
    expect(() => new PlanContext({}, { maxNodes: 0 })).toThrow('limits.maxNodes');
  });

  it('but lets what define throws itself pass as it is', () => {
    const own = new Error('no such customer');
    expect(() =>
      plan(() => {
        throw own;
      }),
    ).toThrow(own);
  });
});

describe('a standalone job (R5)', () => {
  it('is a run of one node that is called like its kind', () => {
    const run = standalonePlan(context, h.two, { a: 1 }, { priority: -1 });
    expect(run).toMatchObject({ workflow: 'two', deps: [], resultNode: 'two' });
    expect(run.nodes).toHaveLength(1);
    expect(run.nodes[0]).toMatchObject({
      node: 'two',
      kind: 'two',
      nodeType: 'step',
      queue: 'slow',
      priority: -1,
      inputJson: '{"a":1}',
      openDeps: 0,
    });
    expect(standalonePlan(context, h.act, null).resultNode).toBeNull();
  });

  it.each([
    ['no handle', { kind: 'x' }, 1, 'CYCLONE_INVALID_GRAPH'],
    ['nothing', undefined, 1, 'CYCLONE_INVALID_GRAPH'],
    ['a kind that cannot name a node', h.badName, 1, 'CYCLONE_INVALID_GRAPH'],
    ['an input that cannot be stored', h.one, { a: 1n }, 'CYCLONE_INVALID_PAYLOAD'],
    ['an input that is too large', h.one, 'x'.repeat(2 ** 20), 'CYCLONE_PAYLOAD_TOO_LARGE'],
  ])('is refused for %s (R3)', (_name, handle, input, code) => {
    expect(() => standalonePlan(context, handle, input)).toThrow(expect.objectContaining({ code }));
  });
});
