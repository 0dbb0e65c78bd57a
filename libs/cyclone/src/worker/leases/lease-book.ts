import type { Lease } from '../../store/lease.js';
import type { Execution } from '../execution.js';
import type { ProgressReport } from './progress-reports.js';

/** Every lease that this worker holds: of handlers at work, and of outcomes that the database does not know yet. */
export class LeaseBook {
  private readonly executions = new Map<string, Execution>();
  private whenEmpty: (() => void)[] = [];

  get size(): number {
    return this.executions.size;
  }

  /** False when this very lease is known already: it was found and its claim was answered (C4). */
  add(execution: Execution): boolean {
    const known = this.executions.get(execution.key);
    if (known && known.generation >= execution.generation) return false;
    this.executions.set(execution.key, execution);
    return true;
  }

  remove(execution: Execution): void {
    if (this.executions.get(execution.key) !== execution) return;
    this.executions.delete(execution.key);
    if (this.executions.size === 0) for (const resolve of this.whenEmpty.splice(0)) resolve();
  }

  /** The execution under exactly this lease. */
  get(lease: Lease): Execution | undefined {
    const execution = this.executions.get(`${lease.runId}:${lease.node}`);
    return execution?.generation === lease.generation ? execution : undefined;
  }

  values(): IterableIterator<Execution> {
    return this.executions.values();
  }

  /** A copy, for calls and threads. */
  list(): Lease[] {
    return Array.from(this.executions.values(), ({ runId, node, generation }) => ({ runId, node, generation }));
  }

  /** What handlers reported since the last call. */
  takeProgress(): ProgressReport[] {
    const reports: ProgressReport[] = [];
    for (const execution of this.executions.values()) {
      if (!execution.progress) continue;
      const { runId, node, generation } = execution;
      reports.push({ runId, node, generation, ...execution.progress });
      execution.progress = undefined;
    }
    return reports;
  }

  /** Resolves when no lease is held. */
  empty(): Promise<void> {
    if (this.executions.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.whenEmpty.push(resolve));
  }
}
