// oxlint-disable-next-line import/no-unassigned-import -- it extends Reflect
import 'reflect-metadata';
import type { HandlerOptions, Type } from '../model/options.js';
import type { WorkflowOptions } from './workflow.js';

/** Constant keys: the decorators of one copy of the package are seen by another. */
const HANDLER_KEY = 'cyclone:handler';
const WORKFLOW_KEY = 'cyclone:workflow';

/** What `@Step()` or `@Action()` says about a method. */
export interface HandlerMetadata {
  /** The registered name; empty when neither the option nor the method has one, which the application refuses at its start (R22). */
  readonly kind: string;
  readonly nodeType: 'step' | 'action';
  readonly options: HandlerOptions;
  /** `Class.method`, for messages. */
  readonly owner: string;
}

/** The metadata that a class sees for a method. */
export interface HandlerLookup {
  readonly metadata: HandlerMetadata;
  /** The class that overrides the decorated method without decorating it again, which would lose the handler in silence. */
  readonly overriddenBy?: string;
}

/** What `@Workflow()` says about a class. */
export interface WorkflowMetadata {
  /** Empty when it was not given, which the application refuses at its start (R40). */
  readonly name: string;
  readonly options: Partial<WorkflowOptions>;
}

/** Keeps metadata by (prototype, key): a decorator that replaces the function does not lose it (C18). */
export function setHandlerMetadata(prototype: object, key: string | symbol, metadata: HandlerMetadata): void {
  Reflect.defineMetadata(HANDLER_KEY, metadata, prototype, key);
}

/** The metadata of a method, inherited ones included; undefined for a method that is not decorated. Fires no getter. */
export function getHandlerMetadata(prototype: object, key: string | symbol): HandlerLookup | undefined {
  let overriddenBy: string | undefined;
  for (const level of chainOf(prototype)) {
    const metadata = Reflect.getOwnMetadata(HANDLER_KEY, level, key) as HandlerMetadata | undefined;
    if (metadata) return overriddenBy === undefined ? { metadata } : { metadata, overriddenBy };
    if (overriddenBy === undefined && Object.hasOwn(level, key)) overriddenBy = className(level);
  }
  return undefined;
}

/** Every decorated method that a class has or inherits. Fires no getter. */
export function listHandlers(prototype: object): Map<string | symbol, HandlerLookup> {
  const found = new Map<string | symbol, HandlerLookup>();
  for (const key of methodKeys(prototype)) {
    const lookup = getHandlerMetadata(prototype, key);
    if (lookup) found.set(key, lookup);
  }
  return found;
}

/** The names of all methods and accessors that a class has or inherits, but not those of Object. */
export function methodKeys(prototype: object): Set<string | symbol> {
  const keys = new Set(chainOf(prototype).flatMap((level) => Reflect.ownKeys(level)));
  keys.delete('constructor');
  return keys;
}

export function setWorkflowMetadata(target: Type, metadata: WorkflowMetadata): void {
  Reflect.defineMetadata(WORKFLOW_KEY, metadata, target);
}

/** The metadata of a workflow class. Not inherited: two classes with one name would be two workflows with one name. */
export function getWorkflowMetadata(target: unknown): WorkflowMetadata | undefined {
  return typeof target === 'function'
    ? (Reflect.getOwnMetadata(WORKFLOW_KEY, target) as WorkflowMetadata | undefined)
    : undefined;
}

/** The class that a prototype belongs to, for messages. */
export function className(prototype: object): string {
  const constructor: unknown = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value;
  return typeof constructor === 'function' && constructor.name !== '' ? constructor.name : '(anonymous class)';
}

/** A prototype and its ancestors, Object's own left out. */
function chainOf(prototype: object): object[] {
  const chain: object[] = [];
  for (let level: object | null = prototype; level !== null; level = Object.getPrototypeOf(level) as object | null) {
    // The last one of any realm is the one without an ancestor of its own.
    if (Object.getPrototypeOf(level) === null && Object.hasOwn(level, 'hasOwnProperty')) break;
    chain.push(level);
  }
  return chain;
}
