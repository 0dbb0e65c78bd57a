import {
  isRunEvent,
  RUN_EVENT_TYPES,
  STEP_EVENT_TYPES,
  type CycloneEvent,
  type RunEventType,
  type StepEventType,
} from '../model/events.js';
import type { ErrorKind } from '../model/states.js';
import type { EngineRow } from './engine-row.js';

export type EventListener = (event: CycloneEvent) => void;

const STEP_EVENTS: ReadonlySet<string> = new Set(STEP_EVENT_TYPES);
const RUN_EVENTS: ReadonlySet<string> = new Set(RUN_EVENT_TYPES);

/**
 * The event that a row tells of; undefined for rows that are no event (`busy`, `due`, `refused`, …).
 * @param answer the rows that came with it: the discard that failed a run is one of them
 */
function eventOf(row: EngineRow, worker: string | undefined, answer: readonly EngineRow[]): CycloneEvent | undefined {
  const type = typeOf(row);
  if (RUN_EVENTS.has(type)) {
    const cause = type === 'run_failed' ? answer.find((other) => failed(row, other)) : undefined;
    return {
      type: type as RunEventType,
      runId: row.runId,
      workflow: row.kind,
      ...(cause === undefined ? {} : { node: cause.node, ...failureOf(cause) }),
      at: new Date(),
    };
  }
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
    ...failureOf(row),
    at: new Date(),
  };
}

function failed(run: EngineRow, { event, runId, info }: EngineRow): boolean {
  return event === 'discarded' && runId === run.runId && info.contained !== true;
}

function failureOf({ info }: EngineRow): { readonly error?: string; readonly errorKind?: ErrorKind } {
  return {
    ...(info.error === undefined ? {} : { error: info.error }),
    ...(info.errorKind === undefined ? {} : { errorKind: info.errorKind as ErrorKind }),
  };
}

/** A row bears the name of its event, but for that of a run which an operator's retry reopened. */
function typeOf({ event }: EngineRow): string {
  return event === 'run_retried' ? 'run_reopened' : event;
}

/**
 * Where events of this process meet their listeners (R33). A listener that throws is reported and harms nobody (R21).
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
      const event = eventOf(row, worker, rows);
      if (!event) continue;
      // Two transitions in one statement are two events.
      if (row.info.promoted && !isRunEvent(event))
        this.emit({ ...event, type: 'promoted', generation: row.generation - 1 });
      this.emit(event);
    }
  }
}
