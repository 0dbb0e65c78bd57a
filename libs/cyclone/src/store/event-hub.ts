import type { CycloneEvent, RunEventType, StepEventType } from '../model/events.js';
import type { ErrorKind } from '../model/states.js';
import type { EngineRow } from './engine-row.js';

export type EventListener = (event: CycloneEvent) => void;

/** Rows of the engine functions that are events under another name, or none. */
const STEP_EVENTS: ReadonlySet<string> = new Set<StepEventType>([
  'promoted',
  'waiting',
  'claimed',
  'retried',
  'snoozed',
  'discarded',
  'cancelled',
  'reclaimed',
  'timed_out',
  'released',
  'paused',
  'resumed',
  'lease_lost',
]);
const RUN_EVENTS: ReadonlyMap<string, RunEventType> = new Map<string, RunEventType>([
  ['run_completed', 'run_completed'],
  ['run_failed', 'run_failed'],
  ['run_cancelled', 'run_cancelled'],
  ['run_paused', 'run_paused'],
  ['run_resumed', 'run_resumed'],
  ['run_retried', 'run_reopened'],
]);

/** The event that a row tells of; undefined for rows that are no event (`busy`, `due`, `refused`, …). */
export function eventOf(row: EngineRow, worker?: string): CycloneEvent | undefined {
  const { info } = row;
  const failure = {
    ...(info.error === undefined ? {} : { error: info.error }),
    ...(info.errorKind === undefined ? {} : { errorKind: info.errorKind as ErrorKind }),
  };
  const runEvent = RUN_EVENTS.get(row.event);
  if (runEvent) return { type: runEvent, runId: row.runId, workflow: row.kind, ...failure, at: new Date() };
  // An operator's retry puts a step where its dependencies call for: ready, or waiting for them without an event of its own.
  const type = row.event === 'reopened' && info.state === 'available' ? 'promoted' : row.event;
  if (!STEP_EVENTS.has(type)) return undefined;
  return {
    type: type as StepEventType,
    runId: row.runId,
    node: row.node,
    kind: row.kind,
    queue: row.queue,
    attempt: row.attempt,
    generation: row.generation,
    ...(worker === undefined ? {} : { worker }),
    ...failure,
    at: new Date(),
  };
}

/**
 * Where events of this process meet their listeners (R33). A listener that throws is reported and harms nobody (R21, S48).
 */
export class EventHub {
  private readonly listeners = new Set<EventListener>();

  constructor(private readonly onListenerError: (error: unknown) => void) {}

  /** Whether anybody listens; the hot path leaves out what nobody would hear. */
  get active(): boolean {
    return this.listeners.size > 0;
  }

  /** Adds a listener; the answer removes it. */
  subscribe(listener: EventListener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  emit(event: CycloneEvent): void {
    for (const listener of this.listeners) {
      try {
        listener(event);
      } catch (error) {
        this.onListenerError(error);
      }
    }
  }

  /** Emits the events of an answer. */
  emitRows(rows: readonly EngineRow[], worker?: string): void {
    if (!this.active) return;
    for (const row of rows) {
      const event = eventOf(row, worker);
      if (event) this.emit(event);
    }
  }
}
