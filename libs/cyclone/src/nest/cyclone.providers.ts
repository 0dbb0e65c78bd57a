import type { FactoryProvider, InjectionToken } from '@nestjs/common';
import { DiscoveryService, ExternalContextCreator, ModulesContainer } from '@nestjs/core';
import { SchedulerRegistry } from '@nestjs/schedule';
import { OperatorClient } from '../client/operator-client.js';
import { WorkflowClient } from '../client/workflow-client.js';
import { PayloadSealer } from '../model/payload-codec.js';
import { Connections } from '../store/connections.js';
import { Engine } from '../store/engine.js';
import { ProblemLog } from '../worker/worker-logger.js';
import { CycloneLogger } from './cyclone-logger.js';
import { CycloneNames } from './cyclone-names.js';
import type { CycloneOptions } from './cyclone-options.js';
import { CycloneShutdown } from './cyclone-shutdown.js';
import { CycloneStartup } from './cyclone-startup.js';
import { CycloneExplorer } from './cyclone.explorer.js';
import { MODULE_OPTIONS_TOKEN } from './cyclone.module-definition.js';
import {
  getEngineToken,
  getOperatorClientToken,
  getWorkerPoolToken,
  getWorkflowClientToken,
} from './cyclone.tokens.js';
import { EventSubscriptions } from './event-subscriptions.js';
import { findDataSource, type FoundDataSource } from './find-data-source.js';
import { HandlerEnhancers } from './handler-enhancers.js';
import { NestDefinitions } from './nest-definitions.js';
import { resolveCycloneOptions } from './resolve-cyclone-options.js';
import { SchedulerTimers } from './scheduler-timers.js';
import { WorkerPool } from './worker-pool.js';
import { WorkerStart } from './worker-start.js';

/** The token of the checked options, inside of one CycloneModule. */
const RESOLVED = Symbol('cyclone:resolved-options');
type Resolved = ReturnType<typeof resolveCycloneOptions>;
/** The token of its DataSource. */
const FOUND = Symbol('cyclone:data-source');
/** The token of its WorkflowClient, which stays when a test overrides the one that the application injects. */
const CLIENT = Symbol('cyclone:workflow-client');

/** A provider made by a factory, whose parameters are what is injected. */
function provide<A extends readonly never[]>(
  token: InjectionToken,
  inject: InjectionToken[],
  useFactory: (...injected: A) => unknown,
): FactoryProvider {
  return { provide: token, inject, useFactory: useFactory as unknown as FactoryProvider['useFactory'] };
}

/** The parts of one Cyclone. */
export function createProviders(name: string | undefined): FactoryProvider[] {
  const engine = getEngineToken(name);
  return [
    provide(RESOLVED, [MODULE_OPTIONS_TOKEN, CycloneNames], (options: CycloneOptions, names: CycloneNames) => {
      names.add(name);
      return resolveCycloneOptions(options, name);
    }),
    provide(WorkerStart, [RESOLVED], ({ options }: Resolved) => new WorkerStart(options)),
    provide(CycloneLogger, [], () => new CycloneLogger(name)),
    provide(ProblemLog, [CycloneLogger], (logger: CycloneLogger) => new ProblemLog(logger)),
    provide(FOUND, [RESOLVED, ModulesContainer], ({ options }: Resolved, modules: ModulesContainer) =>
      findDataSource(options.dataSource, modules),
    ),
    provide(
      engine,
      [RESOLVED, FOUND, ProblemLog],
      ({ options }: Resolved, { dataSource }: FoundDataSource, log: ProblemLog) => {
        const connections = new Connections(dataSource, {
          preparedStatements: options.preparedStatements,
          onWait: (message) => log.report(message),
        });
        const payloads = options.codec && new PayloadSealer(options.codec);
        return new Engine(connections, options.schema, (what, error) => log.report(what, error), {
          payloads,
          defaultAge: options.retention?.defaultAge,
        });
      },
    ),
    provide(
      CycloneExplorer,
      [RESOLVED, DiscoveryService, CycloneNames],
      ({ options }: Resolved, discovery: DiscoveryService, names: CycloneNames) =>
        new CycloneExplorer(name, discovery, names, options.defaults),
    ),
    provide(
      EventSubscriptions,
      [engine, ProblemLog],
      ({ events }: Engine, log: ProblemLog) => new EventSubscriptions(events, (what, error) => log.report(what, error)),
    ),
    provide(
      CLIENT,
      [engine, RESOLVED, CycloneExplorer, WorkerStart, CycloneLogger],
      (it: Engine, { options }: Resolved, explorer: CycloneExplorer, start: WorkerStart, logger: CycloneLogger) =>
        new WorkflowClient(it, new NestDefinitions(options, explorer, start), logger),
    ),
    provide(
      getOperatorClientToken(name),
      [engine, CycloneLogger],
      (it: Engine, logger: CycloneLogger) => new OperatorClient(it, logger),
    ),
    provide(
      CycloneStartup,
      [engine, RESOLVED, FOUND, CycloneExplorer, CycloneNames, EventSubscriptions, CycloneLogger],
      (
        it: Engine,
        { options, problems }: Resolved,
        { problem }: FoundDataSource,
        explorer: CycloneExplorer,
        names: CycloneNames,
        subscriptions: EventSubscriptions,
        logger: CycloneLogger,
      ) => {
        const refusals = problem ? [...problems, problem] : problems;
        return new CycloneStartup({ engine: it, options, problems: refusals, explorer, names, subscriptions, logger });
      },
    ),
    provide(getWorkflowClientToken(name), [CLIENT], (client: WorkflowClient) => client),
    provide(CycloneShutdown, [CLIENT, engine], (it: WorkflowClient, of: Engine) => new CycloneShutdown(it, of)),
    provide(
      getWorkerPoolToken(name),
      [
        engine,
        RESOLVED,
        CycloneStartup,
        WorkerStart,
        CycloneExplorer,
        EventSubscriptions,
        ExternalContextCreator,
        SchedulerRegistry,
        CycloneLogger,
      ],
      (
        it: Engine,
        { options }: Resolved,
        startup: CycloneStartup,
        workerStart: WorkerStart,
        explorer: CycloneExplorer,
        subscriptions: EventSubscriptions,
        creator: ExternalContextCreator,
        registry: SchedulerRegistry,
        logger: CycloneLogger,
      ) => {
        const timers = new SchedulerTimers(registry, name === undefined ? '' : `:${name}`);
        const enhancers = new HandlerEnhancers(creator);
        return new WorkerPool({
          engine: it,
          options,
          startup,
          workerStart,
          explorer,
          subscriptions,
          enhancers,
          timers,
          logger,
        });
      },
    ),
  ];
}

/** What the rest of the application may inject. */
export function exportsOf(name: string | undefined): InjectionToken[] {
  return [getWorkflowClientToken(name), getOperatorClientToken(name), getWorkerPoolToken(name), getEngineToken(name)];
}
