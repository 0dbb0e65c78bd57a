import { AsyncResource } from 'node:async_hooks';
import type { CycloneEvent } from '../model/events.js';
import { RunNotFoundError, WaitTimeoutError } from '../model/errors/run-errors.js';
import { PATIENCE_MS, warnLater } from '../model/patience.js';
import { isTerminalRunState, type TerminalRunState } from '../model/states.js';
import { sleep, startTimer, type Timer } from '../model/timer.js';
import { faultOf } from '../store/database-fault.js';
import type { Engine } from '../store/engine.js';
import type { RunOutcome } from '../store/run-store.js';
import type { Session } from '../store/session.js';
import { ClientClosedError } from './client-errors.js';
import { DatabaseError } from './database-error.js';
import type { ClientLogger } from './definitions.js';

/** The bounds of the time from one look to the next. */
export interface Rhythm {
  readonly shortestMs: number;
  readonly longestMs: number;
}

const RHYTHM: Rhythm = { shortestMs: 25, longestMs: 1_000 };
const LONGEST_BACKOFF_MS = 5_000;
/** Outcomes carry results, so only some are read at once (C13). */
const OUTCOMES_AT_ONCE = 32;

const ENDS: ReadonlyMap<string, TerminalRunState> = new Map([
  ['run_completed', 'completed'],
  ['run_failed', 'failed'],
  ['run_cancelled', 'cancelled'],
]);

/** How long to the next look: a quarter of the time since somebody last began to wait, within bounds. */
export function untilNextLook(sinceArrivalMs: number, { shortestMs, longestMs }: Rhythm = RHYTHM): number {
  return Math.min(longestMs, Math.max(shortestMs, sinceArrivalMs / 4));
}

/** Of a run that has ended. */
export type FinalOutcome = RunOutcome & { readonly state: TerminalRunState };

interface Waiter {
  /** Whether it needs the result, or just the state. */
  readonly wantsOutcome: boolean;
  resolve(outcome: FinalOutcome | TerminalRunState): void;
  reject(error: unknown): void;
}

export interface WatchOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Waits for the ends of any number of runs with one query at a time for all of them. Runs that end in this process are noticed at
 * once; for the others it looks often at first and less often the longer nobody new has come. It does nothing while nobody waits.
 */
export class RunWatcher {
  private readonly waiters = new Map<string, Set<Waiter>>();
  /** Runs that nobody has looked at since somebody began to wait for them. */
  private readonly fresh = new Set<string>();
  /** Runs that have ended in this process; their outcomes are wanted. */
  private readonly ended = new Set<string>();
  private running: Promise<void> | undefined;
  private pause: AbortController | undefined;
  private lastArrival = 0;
  private failures = 0;
  private closed = false;
  private unsubscribe: (() => void) | undefined;
  private readonly scope = new AsyncResource('CycloneRunWatcher');

  constructor(
    private readonly engine: Engine,
    private readonly logger: ClientLogger,
    private readonly rhythm = RHYTHM,
    /** Why this process does not execute anything yet; undefined when it does, or never will. */
    private readonly holdUp: () => string | undefined = () => undefined,
  ) {}

  /** @throws RunNotFoundError, WaitTimeoutError, ClientClosedError, DatabaseError, the signal's reason */
  state(runId: string, options: WatchOptions = {}): Promise<TerminalRunState> {
    return this.watch(runId, false, options) as Promise<TerminalRunState>;
  }

  /** @throws RunNotFoundError, WaitTimeoutError, ClientClosedError, DatabaseError, the signal's reason */
  outcome(runId: string, options: WatchOptions = {}): Promise<FinalOutcome> {
    return this.watch(runId, true, options) as Promise<FinalOutcome>;
  }

  /** Rejects whoever waits, now and later. */
  async close(): Promise<void> {
    this.closed = true;
    for (const runId of this.waiters.keys()) this.settle(runId, (waiter) => waiter.reject(new ClientClosedError()));
    await this.running;
  }

  private watch(runId: string, wantsOutcome: boolean, { timeoutMs, signal }: WatchOptions): Promise<unknown> {
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    if (this.closed) return Promise.reject(new ClientClosedError());
    return new Promise((resolve, reject) => {
      let timer: Timer | undefined;
      const end = (settle: () => void): void => {
        timer?.cancel();
        warning?.cancel();
        signal?.removeEventListener('abort', aborted);
        this.remove(runId, waiter);
        settle();
      };
      const aborted = (): void => end(() => reject(signal?.reason as Error));
      const waiter: Waiter = {
        wantsOutcome,
        resolve: (outcome) => end(() => resolve(outcome)),
        reject: (error) => end(() => reject(error as Error)),
      };
      signal?.addEventListener('abort', aborted, { once: true });
      if (timeoutMs !== undefined) {
        timer = startTimer(timeoutMs, () => waiter.reject(new WaitTimeoutError(runId, timeoutMs)), { unref: true });
      }
      const warning = this.holdUp() === undefined ? undefined : warnLater(() => this.warn(runId));
      this.add(runId, waiter);
    });
  }

  private warn(runId: string): void {
    const reason = this.holdUp();
    if (reason !== undefined)
      this.logger.warn(`Somebody has waited ${PATIENCE_MS / 1_000} s for run ${runId}, and ${reason}`);
  }

  private add(runId: string, waiter: Waiter): void {
    const waiters = this.waiters.get(runId);
    if (waiters) waiters.add(waiter);
    else this.waiters.set(runId, new Set([waiter]));
    this.fresh.add(runId);
    this.lastArrival = performance.now();
    this.unsubscribe ??= this.engine.events.subscribe((event) => this.hear(event));
    this.running ??= this.scope.runInAsyncScope(() => this.run());
    this.lookNow();
  }

  private remove(runId: string, waiter: Waiter): void {
    const waiters = this.waiters.get(runId);
    if (!waiters?.delete(waiter) || waiters.size > 0) return;
    this.waiters.delete(runId);
    this.fresh.delete(runId);
    this.ended.delete(runId);
    if (this.waiters.size > 0) return;
    this.unsubscribe?.();
    this.unsubscribe = undefined;
    this.pause?.abort();
  }

  private settle(runId: string, settle: (waiter: Waiter) => void): void {
    for (const waiter of this.waiters.get(runId) ?? []) settle(waiter);
  }

  private hear({ type, runId }: CycloneEvent): void {
    const state = ENDS.get(type);
    if (state === undefined || !this.waiters.has(runId)) return;
    this.settle(runId, (waiter) => {
      if (!waiter.wantsOutcome) waiter.resolve(state);
    });
    if (!this.waiters.has(runId)) return;
    this.ended.add(runId);
    this.lookNow();
  }

  /** Ends the pause, but not one after a failure: whoever comes must not make a hot loop of an outage. */
  private lookNow(): void {
    if (this.failures === 0) this.pause?.abort();
  }

  private async run(): Promise<void> {
    await Promise.resolve(); // whoever begins to wait in the same moment is looked at together
    while (this.waiters.size > 0) {
      try {
        await this.look();
        this.failures = 0;
      } catch (error) {
        this.handleFailure(error);
      }
      if (this.waiters.size === 0) break;
      if (this.failures === 0 && (this.fresh.size > 0 || this.ended.size > 0)) continue;
      this.pause = new AbortController();
      await sleep(this.delayMs(), { unref: true, signal: this.pause.signal });
      this.pause = undefined;
    }
    this.running = undefined;
  }

  private delayMs(): number {
    if (this.failures > 0) return Math.min(LONGEST_BACKOFF_MS, 100 * 2 ** this.failures) * (0.75 + Math.random() / 2);
    return untilNextLook(performance.now() - this.lastArrival, this.rhythm);
  }

  /** Looks at what is urgent, or else at everything that is waited for. */
  private async look(): Promise<void> {
    const ended = [...this.ended];
    const runIds = this.fresh.size > 0 || ended.length > 0 ? [...this.fresh] : [...this.waiters.keys()];
    this.fresh.clear(); // after a failure everything is looked at, so nothing has to be put back
    this.ended.clear();
    await this.engine.connections.use(async (session) => {
      const done = new Set(ended);
      if (runIds.length > 0) for (const runId of await this.lookAtStates(session, runIds)) done.add(runId);
      await this.readOutcomes(session, [...done]);
    }, 'look at runs that are waited for');
  }

  /** Settles whoever wants a state; gives the runs whose outcome is wanted. */
  private async lookAtStates(session: Session, runIds: readonly string[]): Promise<string[]> {
    const states = await this.engine.runs.runStates(session, runIds);
    return runIds.filter((runId) => {
      const state = states.get(runId);
      if (state === undefined) this.settle(runId, (waiter) => waiter.reject(new RunNotFoundError(runId)));
      else if (isTerminalRunState(state)) {
        this.settle(runId, (waiter) => {
          if (!waiter.wantsOutcome) waiter.resolve(state);
        });
        return this.waiters.has(runId);
      }
      return false;
    });
  }

  private async readOutcomes(session: Session, runIds: readonly string[]): Promise<void> {
    for (let i = 0; i < runIds.length; i += OUTCOMES_AT_ONCE) {
      const some = runIds.slice(i, i + OUTCOMES_AT_ONCE);
      const outcomes = await this.engine.runs.runOutcomes(session, some);
      for (const runId of some) {
        const outcome = outcomes.get(runId);
        if (outcome === undefined) this.settle(runId, (waiter) => waiter.reject(new RunNotFoundError(runId)));
        else if (isTerminalRunState(outcome.state)) {
          this.settle(runId, (waiter) =>
            waiter.resolve(waiter.wantsOutcome ? (outcome as FinalOutcome) : (outcome.state as TerminalRunState)),
          );
        }
      }
    }
  }

  /** An outage is waited out; what no waiting can heal is what the waiters get. */
  private handleFailure(error: unknown): void {
    const fault = faultOf(error);
    if (fault === 'schema' || fault === 'data') {
      for (const runId of this.waiters.keys()) {
        this.settle(runId, (waiter) => waiter.reject(new DatabaseError(`waiting for run ${runId}`, error)));
      }
      return;
    }
    if (this.failures++ === 0) {
      this.logger.warn(
        `Waiting for runs is interrupted and goes on by itself: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
  }
}
