// oxlint-disable typescript/no-explicit-any -- inference over every workflow
import type { QueryRunner } from 'typeorm';
import { buildPlan, standalonePlan } from '../graph/build-plan.js';
import type { SubmitOptions } from '../graph/client-types.js';
import type { AnyHandle, HandleInput, HandleOutput } from '../graph/handle.js';
import type { MustEnqueueNoInput, MustSubmitNoInput, OrLeftOut } from '../graph/input-signature.js';
import { PlanContext } from '../graph/plan-context.js';
import type { RunPlan } from '../graph/plan.js';
import type { WorkflowDefinition, WorkflowInput, WorkflowOutput } from '../graph/workflow.js';
import { CycloneError } from '../model/errors/cyclone-error.js';
import { TransactionConflictError } from '../model/errors/graph-errors.js';
import { InvalidOptionError } from '../model/errors/setup-errors.js';
import type { Type } from '../model/options.js';
import { decodePayload, encodePayload } from '../model/payload.js';
import type { Engine } from '../store/engine.js';
import type { KeyedOutcome } from '../store/submit-store.js';
import { CallerSubmits } from './caller-submits.js';
import type { ClientLogger, Definitions, ResolvedWorkflow } from './definitions.js';
import { OperatorClient } from './operator-client.js';
import { reviveInput } from './payload-validation.js';
import { RunHandle, type RunAccess } from './run-handle.js';
import { checkRunId } from './run-id.js';
import { RunWatcher } from './run-watcher.js';
import { SubmitBatcher } from './submit-batcher.js';
import { checkKey, resolveSettings, type SubmitSettings } from './submit-settings.js';
import { keyed, sealed, toSubmission, type KeyedSubmission, type Submission } from './submission.js';

type AnyWorkflow = Type<WorkflowDefinition<any, any>>;

/**
 * Submits runs and waits for them. Inject it anywhere. Whatever is refused writes nothing, and leaves the caller's transaction as it
 * was (R3, R6).
 */
export class WorkflowClient {
  private readonly batcher: SubmitBatcher;
  private readonly callers: CallerSubmits;
  private readonly access: RunAccess;
  private planContext: PlanContext | undefined;
  /** Submits outside transactions of callers that have not ended. */
  private readonly underWay = new Set<Promise<void>>();

  /** @internal The module makes the client. */
  constructor(
    private readonly engine: Engine,
    private readonly definitions: Definitions,
    private readonly logger: ClientLogger,
  ) {
    this.batcher = new SubmitBatcher(engine);
    this.callers = new CallerSubmits(engine, logger);
    this.access = {
      engine,
      watcher: new RunWatcher(engine, logger, undefined, () => definitions.holdUp?.()),
      operator: new OperatorClient(engine, logger),
    };
  }

  /**
   * Starts a run of a workflow.
   * @throws InvalidGraphError, InvalidPayloadError, PayloadTooLargeError, PayloadCodecError, InputValidationError, InvalidOptionError,
   *   UnknownHandlerError, and whatever `define` throws: nothing was written
   * @throws ConnectionLostError when the database cannot be reached, or the connection of `tx` is gone; its `outcome` says whether the run
   *   may exist
   * @throws DatabaseError when it answers with an error: nothing was written
   */
  submit<W extends WorkflowDefinition<any, any>>(
    workflow: Type<W> & MustSubmitNoInput<WorkflowInput<W>>,
  ): Promise<RunHandle<WorkflowOutput<W>>>;
  submit<W extends WorkflowDefinition<any, any>>(
    workflow: Type<W>,
    input: WorkflowInput<W>,
    options?: SubmitOptions,
  ): Promise<RunHandle<WorkflowOutput<W>>>;
  async submit(workflow: AnyWorkflow, input?: unknown, options: SubmitOptions = {}): Promise<RunHandle<unknown>> {
    const known = this.definitions.workflow(workflow);
    const settings = resolveSettings(options, known.runDeadline);
    const runner = this.callers.runnerOf(options.tx);
    const { plan } = await this.plan(known, input, settings);
    const submission = await toSubmission(plan, settings);
    const [runId] = await this.place([submission], runner);
    return this.handle(runId as string, true);
  }

  /**
   * Starts a run of a workflow unless there is one with this key already, in whatever state (R7): `created` tells. Another input with
   * a known key is ignored and logged. It waits while another transaction holds the key.
   * @throws what submit throws
   * @throws TransactionConflictError in a transaction of the caller, which can still roll back or go on
   */
  submitOnce<W extends WorkflowDefinition<any, any>>(
    workflow: Type<W> & MustSubmitNoInput<WorkflowInput<W>>,
    key: string,
  ): Promise<RunHandle<WorkflowOutput<W>>>;
  submitOnce<W extends WorkflowDefinition<any, any>>(
    workflow: Type<W>,
    key: string,
    input: WorkflowInput<W>,
    options?: SubmitOptions,
  ): Promise<RunHandle<WorkflowOutput<W>>>;
  async submitOnce(
    workflow: AnyWorkflow,
    key: string,
    input?: unknown,
    options: SubmitOptions = {},
  ): Promise<RunHandle<unknown>> {
    const onceKey = checkKey(key);
    const known = this.definitions.workflow(workflow);
    const settings = resolveSettings(options, known.runDeadline);
    const runner = this.callers.runnerOf(options.tx);
    const { plan, inputJson } = await this.plan(known, input, settings);
    const plain = keyed(await toSubmission(plan, settings), onceKey, inputJson ?? this.encode(input));
    const answer = await (runner ? this.placeOnce(plain, runner) : this.track(this.placeOnce(plain)));
    if (answer.outcome === 'busy' || answer.outcome === 'conflict') {
      throw new TransactionConflictError(plan.workflow, onceKey, answer.outcome === 'busy' ? 'busy' : 'snapshot');
    }
    if (!answer.sameInput) {
      this.logger.warn(
        `submitOnce of ${plan.workflow} with the key ${JSON.stringify(onceKey)} found run ${answer.runId}, which was submitted with another input. ` +
          `The new input is ignored.`,
      );
    }
    return this.handle(answer.runId, answer.outcome === 'created');
  }

  /**
   * Starts a run for each input, in order, all in one transaction or none of them (R8).
   * @throws what submit throws; the message names the index of the input
   */
  async submitMany<W extends WorkflowDefinition<any, any>>(
    workflow: Type<W>,
    inputs: readonly WorkflowInput<W>[],
    options: SubmitOptions = {},
  ): Promise<RunHandle<WorkflowOutput<W>>[]> {
    const known = this.definitions.workflow(workflow);
    const settings = resolveSettings(options, known.runDeadline);
    return this.placeMany(inputs, options, settings, async (input) => (await this.plan(known, input, settings)).plan);
  }

  /**
   * Starts a standalone job: a run of one node (R5).
   * @param input may be left out, or undefined, for a handler that takes none
   * @throws what submit throws
   */
  enqueue<H extends AnyHandle>(handle: H & MustEnqueueNoInput<HandleInput<H>>): Promise<RunHandle<HandleOutput<H>>>;
  enqueue<H extends AnyHandle>(
    handle: H,
    input: OrLeftOut<HandleInput<H>>,
    options?: SubmitOptions,
  ): Promise<RunHandle<HandleOutput<H>>>;
  async enqueue(handle: unknown, input?: unknown, options: SubmitOptions = {}): Promise<RunHandle<unknown>> {
    const settings = resolveSettings(options);
    const runner = this.callers.runnerOf(options.tx);
    const plan = standalonePlan(this.context, handle, input, settings.execution);
    const [runId] = await this.place([await toSubmission(plan, settings)], runner);
    return this.handle(runId as string, true);
  }

  /**
   * Starts a standalone job for each input, in order, all in one transaction or none of them (R8).
   * @throws what submit throws; the message names the index of the input
   */
  async enqueueMany<H extends AnyHandle>(
    handle: H,
    inputs: readonly OrLeftOut<HandleInput<H>>[],
    options: SubmitOptions = {},
  ): Promise<RunHandle<HandleOutput<H>>[]> {
    const settings = resolveSettings(options);
    return this.placeMany(inputs, options, settings, async (input) =>
      standalonePlan(this.context, handle, input, settings.execution),
    );
  }

  /**
   * A handle of a run that exists; the workflow gives its type only. The database is not asked.
   * @throws InvalidOptionError, RunNotFoundError for an id that no run can have
   */
  run<W extends WorkflowDefinition<any, any>>(runId: string, workflow: Type<W>): RunHandle<WorkflowOutput<W>>;
  run(runId: string): RunHandle<unknown>;
  run(runId: string): RunHandle<unknown> {
    return this.handle(checkRunId(runId), false);
  }

  /** Waits for submits that are in flight and rejects those who wait for runs. A handler that still drains may submit later. */
  async close(): Promise<void> {
    this.batcher.close();
    while (this.underWay.size > 0) await Promise.all(this.underWay);
    await this.access.watcher.close();
  }

  /** Later than the constructor: the application's handlers are not all known when the client is made. */
  private get context(): PlanContext {
    return (this.planContext ??= new PlanContext(this.definitions.defaults, this.definitions.limits));
  }

  /** Calls `define`. With a DTO class it sees what a child run's would see: an instance made of the stored form (R37). */
  private async plan(
    { name, instance, input: dto }: ResolvedWorkflow,
    input: unknown,
    { execution }: SubmitSettings,
  ): Promise<{ plan: RunPlan; inputJson?: string }> {
    if (dto === undefined) {
      return { plan: buildPlan(this.context, name, (builder) => instance.define(builder, input), execution) };
    }
    const inputJson = this.encode(input);
    const revived = await reviveInput(dto, decodePayload(inputJson), `input of workflow ${name}`);
    return {
      plan: buildPlan(this.context, name, (builder) => instance.define(builder, revived), execution),
      inputJson,
    };
  }

  private encode(input: unknown): string {
    return encodePayload(input, { maxBytes: this.context.maxPayloadBytes, path: 'input' });
  }

  private async placeMany(
    inputs: readonly unknown[],
    options: SubmitOptions,
    settings: SubmitSettings,
    planOf: (input: unknown) => Promise<RunPlan>,
  ): Promise<RunHandle<any>[]> {
    if (!Array.isArray(inputs)) throw new InvalidOptionError('inputs', 'must be a list.');
    const runner = this.callers.runnerOf(options.tx);
    const submissions: Submission[] = [];
    for (const [index, input] of inputs.entries()) {
      try {
        submissions.push(await toSubmission(await planOf(input), settings));
      } catch (error) {
        if (CycloneError.is(error)) error.message = `inputs[${index}]: ${error.message}`;
        throw error;
      }
    }
    if (submissions.length === 0) return [];
    const runIds = await this.place(submissions, runner);
    return runIds.map((runId) => this.handle(runId, true));
  }

  private async place(submissions: readonly Submission[], runner: QueryRunner | undefined): Promise<string[]> {
    if (runner) return this.callers.submit(runner, await this.seal(submissions, runner));
    return this.track(this.placeAlone(submissions));
  }

  private async placeAlone(submissions: readonly Submission[]): Promise<string[]> {
    const ready = await this.seal(submissions);
    const [first, ...rest] = ready;
    return first && rest.length === 0 ? [await this.batcher.submit(first)] : this.batcher.submitTogether(ready);
  }

  private async placeOnce(plain: KeyedSubmission, runner?: QueryRunner): Promise<KeyedOutcome> {
    const [submission = plain] = await this.seal([plain], runner);
    return runner ? this.callers.submitOnce(runner, submission) : this.batcher.submitOnce(submission);
  }

  /** Lets `close` wait for a submit. */
  private track<T>(submit: Promise<T>): Promise<T> {
    const end = submit.then(
      () => void this.underWay.delete(end),
      () => void this.underWay.delete(end),
    );
    this.underWay.add(end);
    return submit;
  }

  /** Lets the codec encode the payloads, each for its run, whose id it has to know for that (R38). */
  private async seal<S extends Submission>(plain: readonly S[], runner?: QueryRunner): Promise<readonly S[]> {
    const { payloads } = this.engine.settings;
    if (!payloads) return plain;
    const ids = runner
      ? await this.callers.reserveIds(runner, plain.length)
      : await Promise.all(plain.map((submission) => this.batcher.reserveId(submission)));
    return Promise.all(plain.map((submission, index) => sealed(submission, ids[index] as string, payloads)));
  }

  private handle<Out>(runId: string, created: boolean): RunHandle<Out> {
    return new RunHandle(runId, created, this.access);
  }
}
