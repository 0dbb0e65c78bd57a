// The public surface of nestjs-cyclone, by layer.

// model: errors
export {
  AlreadyTerminalError,
  ChildNotRetryableError,
  CompletionTransactionError,
  CycloneError,
  DuplicateHandlerError,
  InputValidationError,
  InvalidGraphError,
  InvalidOptionError,
  InvalidPayloadError,
  IrreversibleMigrationError,
  LeaseLostError,
  MissingRightsError,
  NoConnectionError,
  NodeNotFoundError,
  NotPausedError,
  NotRetryableError,
  PayloadCodecError,
  PayloadTooLargeError,
  PermanentError,
  ResultUnavailableError,
  RetryAfterError,
  RunCancelledError,
  RunFailedError,
  RunNotFoundError,
  SchemaVersionError,
  SnoozeError,
  TransactionConflictError,
  UnknownHandlerError,
  UnsafeIsolationError,
  WaitTimeoutError,
  type TransactionProblem,
} from './model/errors/index.js';

// model: states, options, events
export {
  DEP_FAILURE_POLICIES,
  ERROR_KINDS,
  NODE_TYPES,
  RUN_STATES,
  STEP_STATES,
  TERMINAL_RUN_STATES,
  TERMINAL_STEP_STATES,
  type DepFailurePolicy,
  type ErrorKind,
  type NodeType,
  type RunState,
  type StepState,
  type TerminalRunState,
  type TerminalStepState,
} from './model/states.js';
export { TRANSITIONS, type Entity, type Transition } from './model/transitions.js';
export type { Duration } from './model/duration.js';
export type { Backoff, BackoffFunction, ExponentialBackoff, FixedBackoff } from './model/backoff.js';
export type { ExecutionOptions, HandlerDefaults, HandlerOptions, RetryPolicy, Type } from './model/options.js';
export {
  isRunEvent,
  RUN_EVENT_TYPES,
  STEP_EVENT_TYPES,
  type CycloneEvent,
  type RunEvent,
  type RunEventType,
  type StepEvent,
  type StepEventType,
} from './model/events.js';

// graph: what a workflow is made of
export { WorkflowBuilder, type NodeOptions } from './graph/builder.js';
export type { ActionHandle, Node, StepHandle, StepNode } from './graph/handle.js';
export { from, join, lit, type Input, type Joined, type JoinShape } from './graph/inputs.js';
export type { PlanLimits } from './graph/plan-context.js';
export type { PayloadCodec, PayloadLeaf, PayloadPlace } from './model/payload-codec.js';
export { StepContext, type StepLogger } from './graph/step-context.js';
export { stepsOf, type StepsOf } from './graph/steps-of.js';
export type { NotStorable, Stored, StoredOutput } from './graph/stored.js';
export type { StartOptions, SubmitOptions, WaitOptions } from './graph/client-types.js';
export type { WorkflowDefinition, WorkflowInput, WorkflowOptions, WorkflowOutput } from './graph/workflow.js';

// worker: how a process executes steps
export type { RetentionOptions } from './worker/retention-options.js';
export type { WorkerOptions } from './worker/worker-options.js';
export type { RenewalState, WorkerHealth } from './worker/worker.js';

// client: submitting, waiting, operating
export { ClientClosedError, ConnectionLostError } from './client/client-errors.js';
export { DatabaseError } from './client/database-error.js';
export {
  OperatorClient,
  type ActOptions,
  type AuditPage,
  type AuditQuery,
  type BulkOptions,
  type DeadLetterFilter,
  type ExhaustedPage,
  type ExhaustedPageQuery,
  type ExhaustedQuery,
  type PageOptions,
  type PurgeOptions,
  type PurgeProgress,
  type RepairedRun,
  type RepairOptions,
  type RetryExhaustedOptions,
  type RetryExhaustedQuery,
  type RetryOptions,
  type RunsFilter,
  type RunsPage,
  type RunsQuery,
  type StepsPage,
  type StepsQuery,
} from './client/operator-client.js';
export type { AuditRecord } from './store/operations-store.js';
export type { DeadLetterGroup, ExhaustedStep } from './store/dead-letter-store.js';
export type { Finding } from './store/doctor/finding.js';
export type { CappedCount, WorkerStatus } from './store/inspection-store.js';
export type { RunRecord, StepRecord } from './store/run-store.js';
export type { OpenWork, Stats } from './store/stats.js';
export { describeReason, type Explanation, type ExplanationReason } from './model/explanation.js';
export { RunHandle } from './client/run-handle.js';
export { WorkflowClient } from './client/workflow-client.js';

// store: the schema, for TypeORM's own migrations
export { cycloneMigrations, type CycloneMigrationsOptions } from './store/typeorm-migrations.js';

// nest: decorators
export { Action } from './nest/decorators/action.decorator.js';
export { Step } from './nest/decorators/step.decorator.js';
export { Workflow } from './nest/decorators/workflow.decorator.js';
export { OnStepEvent, type EventOfType, type OnStepEventOptions } from './nest/decorators/on-step-event.decorator.js';

// nest: module
export { CycloneModule } from './nest/cyclone.module.js';
export type { CycloneOptions, CycloneOptionsFactory } from './nest/cyclone-options.js';
export { getOperatorClientToken, getWorkerPoolToken, getWorkflowClientToken } from './nest/cyclone.tokens.js';
export { InjectCyclone } from './nest/decorators/inject-cyclone.decorator.js';
export { StartupError } from './nest/startup.error.js';
export { WorkerPool } from './nest/worker-pool.js';

// nest: answering errors over HTTP
export { CycloneHttpInterceptor } from './nest/http/cyclone-http.interceptor.js';
export { toHttpException, type CycloneHttpBody } from './nest/http/http-exception.js';
