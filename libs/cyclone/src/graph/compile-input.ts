import { InvalidPayloadError, PayloadTooLargeError } from '../model/errors/graph-errors.js';
import { encodePayload, MAX_PAYLOAD_DEPTH } from '../model/payload.js';
import type { Node } from './handle.js';
import { expressionOf } from './inputs.js';

export interface CompileOptions {
  /** The node whose input it is, for errors. */
  readonly node: string;
  /** Most bytes of the whole input as JSON. */
  readonly maxBytes: number;
  /** Checks a node that the input refers to, notes the dependency and gives its name. */
  readonly use: (target: Node) => unknown;
  /** The error for an input that is none. */
  readonly refuse: (reason: string) => Error;
}

/** An input for the database: the value, or how to make it of upstream outputs (see PlanNode.inputSpec). */
export interface CompiledInput {
  readonly inputJson: string | null;
  readonly inputSpec: string | null;
}

/** JSON text of a part: of its value when it is known, else of how to make it. */
interface Part {
  readonly json: string;
  readonly known: boolean;
}

/**
 * @param input an expression; undefined for none, which the handler gets as null
 * @throws InvalidPayloadError, PayloadTooLargeError for a literal that cannot be stored (R36), and what the options throw
 */
export function compileInput(input: unknown, options: CompileOptions): CompiledInput {
  const { json, known } = (input === undefined ? undefined : compile(input, 'input', 0, options)) ?? {
    json: 'null',
    known: true,
  };
  if (json.length * 3 > options.maxBytes && Buffer.byteLength(json) > options.maxBytes) {
    throw new PayloadTooLargeError('input', options.maxBytes, options.node);
  }
  return known ? { inputJson: json, inputSpec: null } : { inputJson: null, inputSpec: json };
}

/** Undefined for a literal `undefined`, which an object leaves out as JSON does. */
function compile(value: unknown, path: string, depth: number, options: CompileOptions): Part | undefined {
  const expression = expressionOf(value);
  if (!expression) {
    throw options.refuse(`has an input that is a bare value (at ${path}). Wrap it in lit(), or read it with from().`);
  }
  switch (expression.op) {
    case 'lit':
      if (expression.value === undefined) return undefined;
      return {
        json: encodePayload(expression.value, { maxBytes: options.maxBytes, path, node: options.node, depth }),
        known: true,
      };
    case 'from': {
      options.use(expression.node);
      const keys = expression.keys.map((key) => readableKey(key, path, options));
      const below = keys.length === 0 ? '' : `,"k":[${keys.join(',')}]`;
      return { json: `{"f":${JSON.stringify(expression.node.node)}${below}}`, known: false };
    }
    case 'join':
      return compileShape(expression.shape, path, depth, options);
  }
}

function compileShape(shape: unknown, path: string, depth: number, options: CompileOptions): Part {
  if (depth >= MAX_PAYLOAD_DEPTH) {
    throw new InvalidPayloadError(path, `is nested deeper than ${MAX_PAYLOAD_DEPTH} levels. Flatten it.`, options.node);
  }
  const inner = (item: unknown, at: string): Part | undefined =>
    isShape(item) ? compileShape(item, at, depth + 1, options) : compile(item, at, depth + 1, options);

  if (Array.isArray(shape)) {
    const parts = shape.map((item, index) => inner(item, `${path}[${index}]`) ?? { json: 'null', known: true });
    return assemble(parts, (items) => `[${items.join(',')}]`, 'a');
  }
  if (!isShape(shape))
    throw options.refuse(`has a join() of something that is neither an object nor a list (at ${path}).`);
  const names: string[] = [];
  const parts: Part[] = [];
  for (const key of Object.keys(shape)) {
    const part = inner((shape as Record<string, unknown>)[key], `${path}.${key}`);
    if (part === undefined) continue;
    names.push(encodeKey(key, path, options));
    parts.push(part);
  }
  return assemble(parts, (items) => `{${items.map((item, index) => `${names[index]}:${item}`).join(',')}}`, 'o');
}

/** One known part when all parts are; otherwise every part becomes an expression, the known ones literals. */
function assemble(parts: readonly Part[], write: (items: readonly string[]) => string, tag: 'o' | 'a'): Part {
  if (parts.every((part) => part.known)) return { json: write(parts.map((part) => part.json)), known: true };
  const items = parts.map((part) => (part.known ? `{"l":${part.json}}` : part.json));
  return { json: `{"${tag}":${write(items)}}`, known: false };
}

function isShape(value: unknown): value is object {
  return typeof value === 'object' && value !== null && expressionOf(value) === undefined;
}

function readableKey(key: unknown, path: string, options: CompileOptions): string {
  if (typeof key !== 'string') {
    throw options.refuse(
      `reads a key that is no text but ${key === null ? 'null' : typeof key} (at ${path}). Name the key in from().`,
    );
  }
  return encodeKey(key, path, options);
}

function encodeKey(key: string, path: string, options: CompileOptions): string {
  return encodePayload(String(key), { path: `a key of ${path}`, node: options.node });
}
