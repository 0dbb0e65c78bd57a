import { PayloadCodecError } from './errors/graph-errors.js';
import { isStorable } from './storable-text.js';

/** What a payload is made of besides objects and lists. */
export type PayloadLeaf = string | number | boolean | null;

/** Where a payload belongs: for a codec that binds what it encodes to it, and for what decides what operators may see. */
export interface PayloadPlace {
  readonly runId: string;
  /** The node that the payload is the input or the output of. */
  readonly node: string;
  readonly part: 'input' | 'output';
}

/**
 * Changes payloads on their way into the database and back: encrypts them, masks them (R38). It sees one leaf at a time, because the
 * database takes single properties out of payloads and expands lists, so the structure and the names of properties stay readable.
 *
 * A leaf moves on without being encoded anew: what was encoded as the output of one node is decoded as part of the input of the
 * nodes that refer to it, in the same run. A codec that binds a leaf to its node therefore writes the node into what it makes of it.
 *
 * What it throws refuses a submit, and discards a step as permanent; RetryAfterError gives the step another attempt.
 */
export interface PayloadCodec {
  /** What to store in place of the leaf: again a leaf. */
  encode(leaf: PayloadLeaf, place: PayloadPlace): PayloadLeaf | Promise<PayloadLeaf>;
  /** The leaf that was stored. It is given everything that the database holds, also what was stored without a codec. */
  decode(leaf: PayloadLeaf, place: PayloadPlace): PayloadLeaf | Promise<PayloadLeaf>;
}

type Json = PayloadLeaf | Json[] | { [key: string]: Json };
type Container = Record<string | number, Json>;
type Direction = 'encode' | 'decode';

/** Applies a codec to whole payloads. */
export class PayloadSealer {
  constructor(private readonly codec: PayloadCodec) {}

  /** JSON text of a value → JSON text of what to store. @throws PayloadCodecError */
  async seal(json: string, place: PayloadPlace): Promise<string> {
    const holder: Container = { value: JSON.parse(json) as Json };
    await this.map('encode', holder, place);
    return JSON.stringify(holder['value']);
  }

  /** The same for an input that refers to other nodes: only its literals are payload (R4). */
  async sealSpec(json: string, place: PayloadPlace): Promise<string> {
    const spec = JSON.parse(json) as Json;
    for (const literal of literalsOf(spec)) await this.map('encode', literal, place);
    return JSON.stringify(spec);
  }

  /** Stored JSON text → the value. @throws PayloadCodecError */
  async open(json: string, place: PayloadPlace): Promise<unknown> {
    const holder: Container = { value: JSON.parse(json) as Json };
    await this.map('decode', holder, place);
    return holder['value'];
  }

  /** Puts in place of each leaf below `holder` what the codec makes of it. */
  private async map(direction: Direction, holder: Container, place: PayloadPlace): Promise<void> {
    const leaves = leavesOf(holder);
    try {
      // Each call in a promise of its own: a codec that throws after others have rejected must leave none of them unhandled.
      const results = await Promise.all(leaves.map(async ({ leaf }) => this.codec[direction](leaf, place)));
      for (const [index, { container, key }] of leaves.entries()) setOwn(container, key, checkLeaf(results[index]));
    } catch (error) {
      throw new PayloadCodecError(direction, place, error);
    }
  }
}

interface LeafPlace {
  readonly container: Container;
  readonly key: string | number;
  readonly leaf: PayloadLeaf;
}

function leavesOf(root: Container): LeafPlace[] {
  const leaves: LeafPlace[] = [];
  const open: Container[] = [root];
  for (let container = open.pop(); container; container = open.pop()) {
    for (const key of Object.keys(container)) {
      const value = container[key] as Json;
      if (typeof value === 'object' && value !== null) open.push(value as Container);
      else leaves.push({ container, key, leaf: value });
    }
  }
  return leaves;
}

/** The `{"l": …}` of a reference expression; see PlanNode.inputSpec. */
function literalsOf(spec: Json): Container[] {
  const found: Container[] = [];
  const open: Container[] = [spec as Container];
  for (let part = open.pop(); part; part = open.pop()) {
    if (Object.hasOwn(part, 'l')) found.push(part);
    else for (const tag of ['o', 'a']) open.push(...(Object.values(part[tag] ?? {}) as Container[]));
  }
  return found;
}

/** A property may be called `__proto__`. */
function setOwn(container: Container, key: string | number, value: Json): void {
  if (key === '__proto__')
    Object.defineProperty(container, key, { value, writable: true, enumerable: true, configurable: true });
  else container[key] = value;
}

/** Structure and names were checked with the plain value; only the leaves are new. */
function checkLeaf(made: unknown): PayloadLeaf {
  if (typeof made === 'string' && !isStorable(made)) {
    throw new TypeError('it returned a text with U+0000 or half of a surrogate pair, which Postgres cannot store');
  }
  if (made === null || typeof made === 'string' || typeof made === 'boolean' || Number.isFinite(made)) {
    return made as PayloadLeaf;
  }
  throw new TypeError(
    `it returned ${made === undefined ? 'undefined' : `a value of type ${typeof made}`}, and it must return a string, a finite number, a boolean or null`,
  );
}
