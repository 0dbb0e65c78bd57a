import type { Explanation } from '../model/explanation.js';
import { NodeNotFoundError, RunNotFoundError } from '../model/errors/run-errors.js';
import type { DeadLetterGroup, ExhaustedStep } from '../store/dead-letter-store.js';
import { examine, type Finding } from '../store/doctor/doctor.js';
import { checkPooler } from '../store/doctor/pooler-check.js';
import type { Engine } from '../store/engine.js';
import type { CappedCount, WorkerStatus } from '../store/inspection-store.js';
import type { RunRecord, StepRecord } from '../store/run-store.js';
import type { Session } from '../store/session.js';
import { readStats, type Stats } from '../store/stats.js';
import type { ClientLogger } from './definitions.js';
import {
  BulkOperations,
  type PurgeOptions,
  type RepairOptions,
  type RetryExhaustedOptions,
  type RetryExhaustedQuery,
} from './operator-bulk.js';
import { RunChanges } from './operator-changes.js';
import {
  checkAttempts,
  checkDeadLetters,
  checkNode,
  type ActOptions,
  type DeadLetterFilter,
  type RetryOptions,
} from './operator-options.js';
import {
  OperatorPages,
  type AuditPage,
  type AuditQuery,
  type ExhaustedPage,
  type ExhaustedPageQuery,
  type ExhaustedQuery,
  type RunsFilter,
  type RunsPage,
  type RunsQuery,
  type StepsPage,
  type StepsQuery,
} from './operator-pages.js';
import { checkRunId } from './run-id.js';
import { onConnection } from './transient.js';

export type { ActOptions, BulkOptions, DeadLetterFilter, RetryOptions } from './operator-options.js';
export type {
  PurgeOptions,
  PurgeProgress,
  RepairedRun,
  RepairOptions,
  RetryExhaustedOptions,
  RetryExhaustedQuery,
} from './operator-bulk.js';
export type {
  AuditPage,
  AuditQuery,
  ExhaustedPage,
  ExhaustedPageQuery,
  ExhaustedQuery,
  PageOptions,
  RunsFilter,
  RunsPage,
  RunsQuery,
  StepsPage,
  StepsQuery,
} from './operator-pages.js';

/**
 * What an operator sees of runs and does to them. A change of one run is one transaction that changes all of it or nothing; one of many
 * runs is one for each (R24). Every method throws InvalidOptionError for options that make no sense, before it asks the database, and
 * ConnectionLostError when that cannot be reached, DatabaseError when it answers with an error of its own.
 */
export class OperatorClient {
  private readonly changes: RunChanges;
  private readonly bulk: BulkOperations;
  private readonly pages: OperatorPages;

  /** @internal The module makes the client. */
  constructor(
    private readonly engine: Engine,
    logger: ClientLogger,
  ) {
    this.changes = new RunChanges(engine, logger);
    this.bulk = new BulkOperations(engine, this.changes, logger);
    this.pages = new OperatorPages(engine);
  }

  /**
   * Cancels a run with everything open in it; running handlers are told (R28).
   * @throws RunNotFoundError, AlreadyTerminalError, InvalidOptionError
   */
  async cancel(runId: string, options: ActOptions = {}): Promise<void> {
    await this.changes.apply(checkRunId(runId), { action: 'cancel' }, options);
  }

  /**
   * Starts no new work of a run until it is resumed; what is running goes on (R26). Pausing a paused run changes nothing.
   * @throws RunNotFoundError, AlreadyTerminalError, InvalidOptionError
   */
  async pause(runId: string, options: ActOptions = {}): Promise<void> {
    await this.changes.apply(checkRunId(runId), { action: 'pause' }, options);
  }

  /**
   * Lets a paused run go on, with the time that its timers and its deadline had left (R26).
   * @throws RunNotFoundError, NotPausedError, InvalidOptionError
   */
  async resume(runId: string, options: ActOptions = {}): Promise<void> {
    await this.changes.apply(checkRunId(runId), { action: 'resume' }, options);
  }

  /**
   * Reopens one discarded node of a failed run, and the cancelled nodes that it blocked (R25).
   * @throws RunNotFoundError, NodeNotFoundError, NotRetryableError, ChildNotRetryableError, InvalidOptionError
   */
  async retry(runId: string, node: string, options: RetryOptions = {}): Promise<void> {
    const id = checkRunId(runId);
    const change = { action: 'retry', node: checkNode(id, node), additional: checkAttempts(options) } as const;
    await this.changes.apply(id, change, options);
  }

  /**
   * Reopens every discarded node of a failed run (R25).
   * @throws RunNotFoundError, NotRetryableError, ChildNotRetryableError, InvalidOptionError
   */
  async retryAll(runId: string, options: RetryOptions = {}): Promise<void> {
    const id = checkRunId(runId);
    await this.changes.apply(id, { action: 'retry_all', additional: checkAttempts(options) }, options);
  }

  /**
   * Discarded steps, the newest first (R24).
   * @throws InvalidOptionError
   */
  async listExhausted(query: ExhaustedQuery = {}): Promise<readonly ExhaustedStep[]> {
    return (await this.pages.exhausted(query)).steps;
  }

  /**
   * The same by pages.
   * @throws InvalidOptionError
   */
  async exhaustedPage(query: ExhaustedPageQuery = {}): Promise<ExhaustedPage> {
    return this.pages.exhausted(query);
  }

  /**
   * Dead letters by kind, error kind and fingerprint, the largest group first. Of each group the newest 500 are counted; `capped` says
   * that there are more, and `cyclone_v_dlq` counts them all.
   * @throws InvalidOptionError
   */
  async dlqGroups(query: Pick<DeadLetterFilter, 'kind' | 'since'> = {}): Promise<DeadLetterGroup[]> {
    const filter = checkDeadLetters({ kind: query.kind, since: query.since });
    return this.read('reading of dead letters', (session) => this.engine.deadLetters.groups(session, filter));
  }

  /**
   * Reopens the failed runs behind matching dead letters, each with all its discarded nodes and in a transaction of its own; a dead
   * letter of a child run reopens the root run (R31). Skips what cannot be retried. Gives the number of runs that were reopened.
   *
   * It only counts unless `dryRun` is false, and without any filter it wants `all: true` in the query.
   * @throws InvalidOptionError
   */
  async retryExhausted<DryRun extends boolean>(
    query: RetryExhaustedQuery<DryRun>,
    options: RetryExhaustedOptions & { readonly dryRun: DryRun },
  ): Promise<number> {
    return this.bulk.retryExhausted(query ?? {}, options ?? {});
  }

  /**
   * Deletes runs that are over, in batches that no claim waits for; never a paused run, never a child whose parent may need it (R35).
   * Gives the number of runs. Those that a foreign key of the application holds are left, and logged.
   *
   * It only counts unless `dryRun` is false. Without an age it goes by the retention of the steps, and wants `all: true`.
   * @throws InvalidOptionError
   */
  async purgeTerminalRuns(options: PurgeOptions): Promise<number> {
    return this.bulk.purge(options ?? {});
  }

  /**
   * Mends running runs that cannot go on by themselves: recounts, promotes what should have been promoted, and ends a run that has
   * nothing left to do (R24). Each run is a transaction of its own and logged at WARN. Gives the number of runs.
   *
   * It only looks unless `dryRun` is false and `all` is true.
   * @throws InvalidOptionError
   */
  async repairStrandedRuns(options: RepairOptions): Promise<number> {
    return this.bulk.repair(options ?? {});
  }

  /** How everything stands (R34); exact for what is open, capped for what is over. */
  async stats(): Promise<Stats> {
    const { inspection, operations } = this.engine;
    return this.read('reading of the stats', (session) => readStats(inspection, operations, session));
  }

  /**
   * One run.
   * @throws RunNotFoundError, InvalidOptionError
   */
  async run(runId: string): Promise<RunRecord> {
    const id = checkRunId(runId);
    const run = await this.read(`reading of run ${id}`, (session) => this.engine.runs.runInfo(session, id));
    if (!run) throw new RunNotFoundError(id);
    return run;
  }

  /**
   * A page of runs, the newest first.
   * @throws InvalidOptionError, for a cursor of another filter too
   */
  async runs(query: RunsQuery = {}): Promise<RunsPage> {
    return this.pages.runs(query);
  }

  /**
   * How many runs match, up to 10,000; `capped` also when so many had to be looked at that it stopped counting.
   * @throws InvalidOptionError
   */
  async countRuns(filter: RunsFilter = {}): Promise<CappedCount> {
    return this.pages.countRuns(filter);
  }

  /**
   * The steps of a run by name, with every column of cyclone_v_steps.
   * @throws RunNotFoundError, InvalidOptionError
   */
  async steps(runId: string): Promise<StepRecord[]> {
    const id = checkRunId(runId);
    const steps = await this.read(`reading of the steps of run ${id}`, (session) =>
      this.engine.runs.runSteps(session, id),
    );
    if (steps.length === 0) throw new RunNotFoundError(id); // every run has a node
    return steps;
  }

  /**
   * A page of the steps of a run, by name; without inputs and outputs unless `payloads` asks for them.
   * @throws RunNotFoundError, InvalidOptionError
   */
  async stepsPage(runId: string, query: StepsQuery = {}): Promise<StepsPage> {
    const id = checkRunId(runId);
    const page = await this.pages.steps(id, query);
    if (page.steps.length === 0) await this.run(id);
    return page;
  }

  /**
   * Why a node is not running, or what it is doing instead.
   * @throws RunNotFoundError, NodeNotFoundError, InvalidOptionError
   */
  async explain(runId: string, node: string): Promise<Explanation> {
    const id = checkRunId(runId);
    const name = checkNode(id, node);
    const explanation = await this.read(`explanation of node "${name}" of run ${id}`, (session) =>
      this.engine.inspection.explain(session, id, name),
    );
    if (!explanation) throw new RunNotFoundError(id);
    if (explanation.state === undefined) throw new NodeNotFoundError(id, name);
    return explanation;
  }

  /** The known workers, the oldest first; a dead one is forgotten after a day. */
  async workers(): Promise<WorkerStatus[]> {
    return this.read('reading of the workers', (session) => this.engine.inspection.workers(session));
  }

  /** Examines the server, the schema and the work, and says what to do about each finding. */
  async doctor(): Promise<Finding[]> {
    const { schema, inspection, operations } = this.engine;
    const findings = await this.read('examination', (session) => examine(session, schema, inspection, operations));
    return [...findings, ...(await checkPooler(this.engine.connections))];
  }

  /**
   * What operators did, the latest first: changes whose caller said who or why.
   * @throws InvalidOptionError
   */
  async audit(query: AuditQuery = {}): Promise<AuditPage> {
    return this.pages.audit(query);
  }

  private read<T>(what: string, work: (session: Session) => Promise<T>): Promise<T> {
    return onConnection(this.engine.connections, what, work);
  }
}
