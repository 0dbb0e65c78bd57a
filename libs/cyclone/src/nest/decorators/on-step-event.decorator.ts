import type { CycloneEvent, RunEvent, RunEventType, StepEvent, StepEventType } from '../../model/events.js';
import { setListenerMetadata } from '../listener-metadata.js';

/** The event that a type names. */
export type EventOfType<T extends CycloneEvent['type']> = T extends StepEventType
  ? StepEvent & { readonly type: T }
  : T extends RunEventType
    ? RunEvent & { readonly type: T }
    : never;

/** A method type, because parameters of methods may be narrower: who listens to all events may care for those of steps only. */
type Listener<E> = { listen(event: E): unknown }['listen'];

export interface OnStepEventOptions {
  /** The `name` of the CycloneModule whose events are meant. @default the unnamed one */
  readonly cyclone?: string;
}

/**
 * Lets a method of a provider hear what this process does to steps and runs: each event after its commit, at most once (R33).
 * What the method throws or rejects with is logged; nobody waits for it.
 * @param types the type or types of events. @default all, those of runs included
 */
export function OnStepEvent<T extends CycloneEvent['type'] = CycloneEvent['type']>(
  types?: T | readonly T[],
  options: OnStepEventOptions = {},
) {
  return <M extends Listener<EventOfType<T>>>(
    prototype: object,
    key: string | symbol,
    _descriptor: TypedPropertyDescriptor<M>,
  ): void =>
    setListenerMetadata(prototype, key, {
      types: types === undefined ? undefined : [types].flat(),
      cyclone: options.cyclone,
    });
}
