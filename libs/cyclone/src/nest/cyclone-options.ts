import type { DataSource } from 'typeorm';
import type { StepEvent } from '../model/events.js';
import type { HandlerDefaults } from '../model/options.js';
import type { PayloadCodec } from '../model/payload-codec.js';
import type { PlanLimits } from '../graph/plan-context.js';
import type { RetentionOptions } from '../worker/retention-options.js';
import type { WorkerOptions } from '../worker/worker-options.js';

/** Options of `CycloneModule`. Whatever is wrong with them is listed at the start, all of it at once (R22). */
export interface CycloneOptions {
  /** For a second Cyclone in one application. With `forRootAsync` it stands beside the factory. @default the unnamed one */
  readonly name?: string;
  /** A DataSource of TypeORM for Postgres, initialized by the application, or its name. @default the default one */
  readonly dataSource?: string | DataSource;
  /** The Postgres schema of the `cyclone_*` objects, at most 63 bytes. @default 'public' */
  readonly schema?: string;
  /** Whether the start applies missing migrations. @default false */
  readonly migrationsRun?: boolean;
  /** false: this process only submits and operates; it executes nothing and opens no connection of its own. @default {} */
  readonly worker?: false | WorkerOptions;
  /** For every step and action that says nothing itself (R9). */
  readonly defaults?: HandlerDefaults;
  readonly limits?: PlanLimits;
  /**
   * Runs that are over are deleted by themselves when their retention has passed, from processes with a worker (R35): the longest
   * `retention` among their steps, `defaultAge` for a step without one. `{}` goes by the steps alone. Processes that share a schema
   * should say the same. @default nothing is deleted by itself
   */
  readonly retention?: RetentionOptions;
  /** Encodes payloads for the database and decodes them (R38). Every process of one schema needs the same. @default none */
  readonly codec?: PayloadCodec;
  /** Named prepared statements; false behind a pooler in transaction mode. @default true */
  readonly preparedStatements?: boolean;
  /** Whether the worker hears of work by LISTEN, on a connection of its own; false: by polling alone. @default true */
  readonly listen?: boolean;
  /**
   * Hears what this process does to steps, each event after its commit (R33); for events of runs, and for some types only, there is
   * `@OnStepEvent()`. What it throws or rejects with is logged; nobody waits for it.
   */
  readonly onStepEvent?: (event: StepEvent) => unknown;
}

/** Makes the options, for `forRootAsync({ useClass })` and `useExisting`. */
export interface CycloneOptionsFactory {
  createCycloneOptions(): CycloneOptions | Promise<CycloneOptions>;
}

/** Options with every default, harmless ones in place of those that are wrong. */
export interface ResolvedCycloneOptions {
  readonly name: string | undefined;
  readonly dataSource: string | DataSource | undefined;
  readonly schema: string;
  readonly migrationsRun: boolean;
  readonly worker: false | WorkerOptions;
  readonly defaults: HandlerDefaults;
  readonly limits: PlanLimits;
  readonly retention: RetentionOptions | undefined;
  readonly codec: PayloadCodec | undefined;
  readonly preparedStatements: boolean;
  readonly listen: boolean;
  readonly onStepEvent: ((event: StepEvent) => unknown) | undefined;
}
