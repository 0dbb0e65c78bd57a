import type { CycloneError } from '../model/errors/cyclone-error.js';
import { InvalidOptionError } from '../model/errors/setup-errors.js';
import { RUN_EVENT_TYPES, STEP_EVENT_TYPES } from '../model/events.js';
import { parsePositiveDuration } from '../model/duration.js';
import {
  resolveHandlerOptions,
  type ExecutionOptions,
  type HandlerDefaults,
  type HandlerOptions,
  type ResolvedOptions,
} from '../model/options.js';
import { looksMinified } from '../model/minified-name.js';
import { isStorable } from '../model/storable-text.js';
import { checkKind, checkNodeName, MAX_NODE_NAME_BYTES as MAX_NAME_BYTES } from '../graph/check.js';
import type { HandlerMetadata } from '../graph/metadata.js';
import type { WorkflowOptions } from '../graph/workflow.js';
import { checkEach } from './collect-problems.js';
import type { DiscoveredWorkflow } from './discovery.js';
import type { ListenerMetadata } from './listener-metadata.js';

const EXECUTION_OPTIONS = ['queue', 'priority', 'timeout', 'retry', 'retention'] as const;
const HANDLER_OPTIONS = [...EXECUTION_OPTIONS, 'name', 'input', 'cyclone'] as const;
const EVENT_TYPES: ReadonlySet<string> = new Set([...STEP_EVENT_TYPES, ...RUN_EVENT_TYPES]);
const WORKFLOW_OPTIONS = ['name', 'input', 'runDeadline', 'cyclone'] as const;

/** Checks the module's `defaults`, each option by itself. */
export function checkDefaults(problems: CycloneError[], defaults: HandlerDefaults): void {
  checkEach(problems, defaults, EXECUTION_OPTIONS, (one) => resolveExecution(one, 'defaults'), { prefix: 'defaults.' });
}

/** Checks a handler, each option by itself (R22); gives its options unless something is wrong. */
export function checkHandler(
  problems: CycloneError[],
  metadata: HandlerMetadata,
  defaults: HandlerDefaults,
  where: string,
): ResolvedOptions | undefined {
  const before = problems.length;
  const { kind, options } = metadata;
  if (options.name !== undefined && typeof options.name !== 'string') {
    problems.push(new InvalidOptionError(`name of ${where}`, 'must be a string.'));
  } else {
    const wrong = checkNodeName(kind);
    // A standalone job's node, and by default that of a graph, is called like its kind (R5).
    const problem = wrong === undefined ? checkKind(metadata) : nameAdvice(kind, wrong);
    if (problem !== undefined) problems.push(new InvalidOptionError(`name of ${where}`, problem));
  }
  checkEach<HandlerOptions>(problems, options, HANDLER_OPTIONS, (one) => checkOne(one, where), {
    suffix: ` of ${where}`,
  });
  return problems.length === before ? resolveHandlerOptions(defaults, options, [], where) : undefined;
}

/** Checks a workflow; says whether it is in order. */
export function checkWorkflow(problems: CycloneError[], workflow: DiscoveredWorkflow, where: string): boolean {
  const before = problems.length;
  const { name, instance, options, target } = workflow;
  if (name === '' || (name === target.name && looksMinified(name))) {
    problems.push(new InvalidOptionError(`name of ${where}`, workflowNameAdvice(name)));
  } else if (typeof name !== 'string' || Buffer.byteLength(name) > MAX_NAME_BYTES || !isStorable(name)) {
    problems.push(
      new InvalidOptionError(
        `name of ${where}`,
        `must be a text of 1 to ${MAX_NAME_BYTES} bytes that Postgres can store.`,
      ),
    );
  }
  if (instance === undefined) problems.push(scopeProblem('@Workflow()', where));
  else if (typeof instance.define !== 'function') {
    problems.push(new InvalidOptionError(`define of ${where}`, 'must be a method: what is provided has none.'));
  }
  checkEach<Partial<WorkflowOptions>>(
    problems,
    options,
    WORKFLOW_OPTIONS,
    ({ runDeadline, input }) => {
      if (runDeadline !== undefined) parsePositiveDuration(runDeadline, `runDeadline of ${where}`);
      checkClass(input, where);
    },
    { suffix: ` of ${where}` },
  );
  return problems.length === before;
}

/** Checks a listener: one that names no event that there is would never hear anything. */
export function checkListener(problems: CycloneError[], { types }: ListenerMetadata, where: string): boolean {
  const unknown = types.filter((type) => !EVENT_TYPES.has(type));
  if (types.length > 0 && unknown.length === 0) return true;
  const problem = unknown.length > 0 ? `names ${unknown.map((type) => JSON.stringify(type)).join(', ')}` : 'names none';
  problems.push(
    new InvalidOptionError(
      `types of @OnStepEvent() on ${where}`,
      `${problem}. Events are ${[...EVENT_TYPES].join(', ')}.`,
    ),
  );
  return false;
}

function workflowNameAdvice(name: string): string {
  const fault = name === '' ? 'is missing' : `is "${name}", that of the class, as if a build tool had renamed it`;
  return (
    `${fault}. It is stored with every run, and the next build may call another class so. Write one that stays, ` +
    `as a text and not as the name of the class: @Workflow({ name: 'place_order' }).`
  );
}

/** Refuses a provider that has no instance of its own outside of a request. */
export function scopeProblem(what: string, where: string): InvalidOptionError {
  return new InvalidOptionError(
    `scope of ${where}`,
    `must be the default one: ${what} needs one instance for the whole application, and this provider, or one that it injects, is request-scoped or transient.`,
  );
}

function checkOne({ input, name: _name, cyclone: _cyclone, ...execution }: HandlerOptions, where: string): void {
  checkClass(input, where);
  resolveExecution(execution, where);
}

function resolveExecution(options: ExecutionOptions, subject: string): void {
  if (options.retry !== undefined && (typeof options.retry !== 'object' || options.retry === null)) {
    throw new InvalidOptionError(`retry of ${subject}`, 'must be an object of maxAttempts and backoff.');
  }
  resolveHandlerOptions({}, options, [], subject);
}

/** Makes an instance as class-transformer will: a class that cannot be made without arguments would fail every input (R37). */
function checkClass(input: unknown, where: string): void {
  if (input === undefined) return;
  if (typeof input !== 'function') throw new InvalidOptionError(`input of ${where}`, 'must be a class.');
  try {
    Reflect.construct(input, []);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new InvalidOptionError(
      `input of ${where}`,
      `is ${input.name}, which cannot be made without arguments (${message}). ` +
        `Inputs are made by a constructor without arguments, then filled: give its parameters defaults, or declare fields only.`,
      { cause: error },
    );
  }
}

function nameAdvice(kind: string, problem: string): string {
  return kind === ''
    ? 'is missing: a method whose key is a symbol has no name of its own. Give the handler one with the option `name`.'
    : `${problem} Give the handler another one.`;
}
