import type { SchedulerRegistry } from '@nestjs/schedule';
import { platformTimers, type Timers } from '../worker/timers.js';

/** Timers of housekeeping that an application finds as intervals `cyclone:…` in the SchedulerRegistry. */
export class SchedulerTimers implements Timers {
  /** @param suffix tells the timers of a named Cyclone from those of the others */
  constructor(
    private readonly registry: SchedulerRegistry,
    private readonly suffix: string,
  ) {}

  every(name: string, everyMs: number, call: () => void): { stop(): void } {
    const timer = platformTimers.every(name, everyMs, call);
    const entry = `cyclone:${name}${this.suffix}`;
    this.remove(entry);
    this.registry.addInterval(entry, timer);
    return {
      stop: () => {
        timer.stop();
        this.remove(entry);
      },
    };
  }

  /** The application may have removed it, and its own shutdown removes all. */
  private remove(entry: string): void {
    if (this.registry.doesExist('interval', entry)) this.registry.deleteInterval(entry);
  }
}
