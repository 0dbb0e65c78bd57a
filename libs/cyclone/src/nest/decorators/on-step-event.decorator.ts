import { InvalidOptionError } from '../../model/errors/setup-errors.js';
import {
  STEP_EVENT_TYPES,
  type CycloneEvent,
  type RunEvent,
  type RunEventType,
  type StepEvent,
  type StepEventType,
} from '../../model/events.js';
import { className } from '../../graph/metadata.js';
import { setListenerMetadata } from '../listener-metadata.js';

/** The event that a type names. */
export type EventOfType<T extends CycloneEvent['type']> = T extends StepEventType
  ? StepEvent & { readonly type: T }
  : T extends RunEventType
    ? RunEvent & { readonly type: T }
    : never;

export interface OnStepEventOptions {
  /** The `name` of the CycloneModule whose events are meant. @default the unnamed one */
  readonly cyclone?: string;
}

/**
 * Lets a method of a provider hear what this process does to steps: each event after its commit, at most once (R33). Events of runs come
 * to who names them: `@OnStepEvent('run_failed')`, or all of them with `@OnStepEvent(RUN_EVENT_TYPES)`.
 * What the method throws or rejects with is logged; nobody waits for it.
 * @param types the type, or a list of types. @default every type of step event, and no run event
 * @throws InvalidOptionError when more types follow in place of the options
 */
export function OnStepEvent<T extends CycloneEvent['type'] = StepEventType>(
  types?: T | readonly T[],
  options: OnStepEventOptions = {},
) {
  return <M extends (event: EventOfType<T>) => unknown>(
    prototype: object,
    key: string | symbol,
    _descriptor: TypedPropertyDescriptor<M>,
  ): void => {
    if (typeof options !== 'object' || options === null) {
      throw new InvalidOptionError(
        `@OnStepEvent() on ${className(prototype)}.${String(key)}`,
        `takes one type or one list of types: @OnStepEvent(['discarded', 'timed_out']).`,
      );
    }
    setListenerMetadata(prototype, key, { types: [types ?? STEP_EVENT_TYPES].flat(), cyclone: options.cyclone });
  };
}
