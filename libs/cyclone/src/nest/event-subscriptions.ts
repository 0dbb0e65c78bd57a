import type { CycloneEvent } from '../model/events.js';
import type { EventHub } from '../store/event-hub.js';
import type { DiscoveredListener } from './discovery.js';

type Methods = Record<string | symbol, (event: CycloneEvent) => unknown>;

/** Connects the listeners of an application to the events of one Cyclone. A listener harms nobody, whatever it does (R21). */
export class EventSubscriptions {
  private readonly connected = new Map<object, Set<string | symbol>>();

  /** @param onProblem told of what a listener throws or rejects with */
  constructor(
    private readonly events: EventHub,
    private readonly onProblem: (what: string, error: unknown) => void,
  ) {}

  /** Connects those that are not connected yet. */
  connect(listeners: readonly DiscoveredListener[]): void {
    for (const { host, key, where, metadata } of listeners) {
      const instance = host.instance as Methods;
      const keys = this.connected.get(instance) ?? new Set();
      if (keys.has(key)) continue;
      this.connected.set(instance, keys.add(key));
      this.connectFunction(where, (event) => instance[key]?.(event), metadata.types);
    }
  }

  /** @param types of the events that it wants */
  connectFunction(where: string, listener: (event: CycloneEvent) => unknown, types: readonly string[]): void {
    const wanted = new Set(types);
    const problem = (error: unknown): void => this.onProblem(`The event listener ${where} failed`, error);
    this.events.subscribe((event) => {
      if (!wanted.has(event.type)) return;
      try {
        const answer = listener(event);
        if (isThenable(answer)) answer.then(undefined, problem);
      } catch (error) {
        problem(error);
      }
    });
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}
