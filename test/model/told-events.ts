import type { CycloneEvent } from '#cyclone/model/events.js';
import type { EngineRow } from '#cyclone/store/engine-row.js';
import { EventHub } from '#cyclone/store/event-hub.js';
import type { Told } from './operations.js';

/** The events of the ways to leave `running` without an end. */
const PUT_BACK = ['retried', 'snoozed', 'released', 'reclaimed', 'interrupted', 'timed_out'];
const RUN_EVENTS: Readonly<Record<string, string>> = { running: 'run_reopened', paused: 'run_paused' };

/** The events that one change of state may be told by (R33); each change has exactly one. */
function typesOf(entity: string, from: string, to: string): readonly string[] {
  if (entity === 'run')
    return [from === 'paused' && to === 'running' ? 'run_resumed' : (RUN_EVENTS[to] ?? `run_${to}`)];
  if (from === 'discarded' || from === 'cancelled') return ['reopened'];
  if (from === 'paused' && to !== 'cancelled' && to !== 'discarded') return ['resumed'];
  if (from === 'running' && (to === 'available' || to === 'paused')) return PUT_BACK;
  if (to === 'available') return ['promoted'];
  if (to === 'running') return ['claimed'];
  return to.startsWith('waiting') ? ['waiting'] : [to];
}

/** The events that the library makes of an answer, as `run 1` or `step 1/a` → types. */
function eventsOf(told: readonly Told[]): Map<string, string[]> {
  const events = new Map<string, string[]>();
  const hub = new EventHub((error) => {
    throw error;
  });
  hub.subscribe((event: CycloneEvent) => {
    const key = 'workflow' in event ? `run ${event.runId}` : `step ${event.runId}/${event.node}`;
    events.set(key, [...(events.get(key) ?? []), event.type]);
  });
  const rows = told.map(({ event, runId, node, generation, info }) => ({
    event,
    runId,
    node,
    generation,
    kind: '',
    info,
  }));
  hub.emitRows(rows as unknown as EngineRow[]);
  return events;
}

/**
 * What is wrong with the events of an operation: each change of state has its own, and no event is without one (R33). Completions are
 * left out: the worker that asked for them tells of them itself.
 * @param paths the states that each run and step came to by the operation, after the one that it had
 */
export function wrongEvents(paths: ReadonlyMap<string, readonly string[]>, told: readonly Told[]): string[] {
  const wrong: string[] = [];
  const events = eventsOf(told);
  for (const key of new Set([...paths.keys(), ...events.keys()])) {
    const [first = '', ...rest] = paths.get(key) ?? [];
    const left = (events.get(key) ?? []).filter((type) => type !== 'lease_lost');
    let from = first;
    for (const to of rest) {
      const types = typesOf(key.split(' ')[0] ?? '', from, to);
      const place = left.findIndex((type) => types.includes(type));
      if (place >= 0) left.splice(place, 1);
      else if (key.startsWith('run') || to !== 'completed') wrong.push(`${key}: ${from} → ${to} has no event`);
      // The last attempt timed out: that is told beside its end. A node whose input has to be made is reopened by way of pending.
      const beside = to === 'discarded' ? ['timed_out'] : types[0] === 'reopened' ? ['promoted', 'waiting'] : [];
      const extra = left.findIndex((type) => beside.includes(type));
      if (extra >= 0 && (to !== 'pending' || rest.length === 1)) left.splice(extra, 1);
      from = to;
    }
    for (const type of left) wrong.push(`${key}: the event ${type} without a change`);
  }
  return wrong;
}
