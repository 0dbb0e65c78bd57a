import { createHash, randomUUID } from 'node:crypto';
import type { RunPlan } from '../graph/plan.js';
import type { PayloadSealer } from '../model/payload-codec.js';
import type { Engine } from '../store/engine.js';
import type { NewKeyedRun, NewNode, NewRun } from '../store/submit-store.js';
import { reviveInput } from './payload-validation.js';
import type { SubmitSettings } from './submit-settings.js';

/** Bounds of one call: large enough to share its round trip, small enough for the memory of both sides (C13). */
const MAX_RUNS = 500;
const MAX_ROWS = 10_000;
const MAX_CHARACTERS = 4 * 1024 * 1024;

/** A run that is ready for the database, with what has to be done once it is there. */
export interface Submission {
  readonly run: NewRun;
  /** Rows that it inserts: its nodes and edges. */
  readonly rows: number;
  /** Characters of its payloads. */
  readonly characters: number;
  /** Queues in which it has work when it starts. */
  readonly wake: readonly string[];
}

export interface KeyedSubmission extends Submission {
  readonly run: NewKeyedRun;
}

/** @throws InputValidationError for a literal that its handler's DTO class refuses (R37) */
export async function toSubmission(plan: RunPlan, settings: SubmitSettings): Promise<Submission> {
  await checkLiterals(plan);
  const wake = new Set<string>();
  for (const { openDeps, nodeType, queue } of plan.nodes) {
    if (openDeps === 0 && isExecuted(nodeType)) wake.add(queue);
  }
  return {
    run: {
      workflow: plan.workflow,
      resultNode: plan.resultNode,
      tags: settings.tags,
      delayMs: settings.delayMs,
      startAt: settings.startAt,
      deadlineMs: settings.deadlineMs,
      nodes: plan.nodes,
      deps: plan.deps,
    },
    rows: plan.nodes.length + plan.deps.length,
    characters: charactersOf(plan.nodes),
    wake: [...wake],
  };
}

/** @param inputJson of the workflow: a key that comes again with another input is noticed by it (R7) */
export function keyed(submission: Submission, onceKey: string, inputJson: string): KeyedSubmission {
  const onceHash = createHash('sha256').update(canonical(inputJson)).digest('hex');
  return { ...submission, run: { ...submission.run, onceKey, onceHash, onceToken: randomUUID() } };
}

/** How many of the items, from the first on, go into one call; at least one. */
export function countForOneCall<T>(
  items: readonly T[],
  submissionOf: (item: T) => Submission,
  most = MAX_RUNS,
): number {
  let count = 0;
  let rows = 0;
  let characters = 0;
  while (count < Math.min(items.length, most)) {
    const next = submissionOf(items[count] as T);
    rows += next.rows;
    characters += next.characters;
    if (count > 0 && (rows > MAX_ROWS || characters > MAX_CHARACTERS)) break;
    count++;
  }
  return count;
}

/** Wakes workers and emits `submitted` events, after the commit that made the runs (R33). */
export function announce(engine: Engine, submissions: readonly Submission[], runIds: readonly string[]): void {
  wakeFor(engine, submissions);
  emitSubmitted(engine, submissions, runIds);
}

/** @param answeredAt when the database had made the runs, on `performance.now()`: their delays count from then at the latest */
export function wakeFor(engine: Engine, submissions: readonly Submission[], answeredAt = performance.now()): void {
  const queues = new Set<string>();
  for (const { wake, run } of submissions) {
    const leftMs = run.delayMs === null ? 0 : run.delayMs - (performance.now() - answeredAt);
    if (leftMs > 0) engine.notifier.expect(wake, leftMs);
    else for (const queue of wake) queues.add(queue);
    // By a clock that is not the database's, so this is a guess, and the time may have passed already.
    if (run.startAt !== null) engine.notifier.expect(wake, Math.max(0, Date.parse(run.startAt) - Date.now()));
  }
  if (queues.size > 0) engine.notifier.wake({ queues: [...queues] });
}

export function emitSubmitted(engine: Engine, submissions: readonly Submission[], runIds: readonly string[]): void {
  if (!engine.events.active) return;
  submissions.forEach(({ run }, index) => {
    const runId = runIds[index] as string;
    engine.events.emit({ type: 'run_submitted', runId, workflow: run.workflow, at: new Date() });
    for (const { node, kind, queue } of run.nodes) {
      engine.events.emit({ type: 'submitted', runId, node, kind, queue, attempt: 1, generation: 0, at: new Date() });
    }
  });
}

/** The same with its payloads encoded for the run that it will be (R38). */
export async function sealed<S extends Submission>(submission: S, runId: string, payloads: PayloadSealer): Promise<S> {
  const seal = async (node: NewNode): Promise<NewNode> => {
    const place = { runId, node: node.node, part: 'input' } as const;
    return {
      ...node,
      inputJson: node.inputJson === null ? null : await payloads.seal(node.inputJson, place),
      inputSpec: node.inputSpec === null ? null : await payloads.sealSpec(node.inputSpec, place),
    };
  };
  const nodes = await Promise.all(submission.run.nodes.map(seal));
  return { ...submission, characters: charactersOf(nodes), run: { ...submission.run, id: runId, nodes } };
}

/** Of the payloads. */
function charactersOf(nodes: readonly Pick<NewNode, 'inputJson' | 'inputSpec'>[]): number {
  return nodes.reduce((sum, { inputJson, inputSpec }) => sum + (inputJson ?? inputSpec ?? '').length, 0);
}

async function checkLiterals(plan: RunPlan): Promise<void> {
  for (const { node, nodeType, inputJson, handler } of plan.nodes) {
    const type = handler?.options.input;
    if (type === undefined || inputJson === null) continue;
    const value: unknown = JSON.parse(inputJson);
    const subject = `input of node "${node}"`;
    if (nodeType !== 'fan_out') await reviveInput(type, value, subject, node);
    else if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) await reviveInput(type, item, `${subject}, item ${index}`, node);
    }
  }
}

/** Whether a worker claims nodes of this type; the others wait for time, a signal or a child run. */
function isExecuted(nodeType: string): boolean {
  return nodeType === 'step' || nodeType === 'action' || nodeType === 'fan_out';
}

/** The same text for the same value, in whatever order its properties are. */
function canonical(json: string): string {
  return JSON.stringify(JSON.parse(json), (_key, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}
