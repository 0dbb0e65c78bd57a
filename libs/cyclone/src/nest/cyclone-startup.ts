import type { OnModuleInit } from '@nestjs/common';
import { CycloneError } from '../model/errors/cyclone-error.js';
import { InvalidOptionError, SchemaVersionError } from '../model/errors/setup-errors.js';
import { STEP_EVENT_TYPES, type StepEvent } from '../model/events.js';
import type { Engine } from '../store/engine.js';
import { migrate } from '../store/migrator.js';
import { sharesSessions } from '../store/pooler.js';
import type { Query } from '../store/schema-status.js';
import { checkServer, dataSourceProblem, nativeDriverProblem } from '../store/server-check.js';
import { poolProblem } from '../worker/pool-size.js';
import type { CycloneLogger } from './cyclone-logger.js';
import type { CycloneNames } from './cyclone-names.js';
import type { ResolvedCycloneOptions } from './cyclone-options.js';
import type { CycloneExplorer } from './cyclone.explorer.js';
import type { EventSubscriptions } from './event-subscriptions.js';
import { startupError } from './startup.error.js';

const isAboutDataSource = (problem: CycloneError): boolean =>
  InvalidOptionError.is(problem) && problem.option === 'dataSource';

/** A test may have put something else in its place. */
const typeOf = ({ options }: { readonly options?: { readonly type?: string } }): string => options?.type ?? 'unknown';

export interface StartupParts {
  readonly engine: Engine;
  readonly options: ResolvedCycloneOptions;
  /** What is wrong with the options, a missing DataSource included. */
  readonly problems: readonly CycloneError[];
  readonly explorer: CycloneExplorer;
  readonly names: CycloneNames;
  readonly subscriptions: EventSubscriptions;
  readonly logger: CycloneLogger;
}

/**
 * Looks before the application's own hooks whether Cyclone can work, and refuses the start with everything that is wrong at once
 * (R22). Connects listeners, so that they hear of what those hooks submit.
 */
export class CycloneStartup implements OnModuleInit {
  private checked: Promise<void> | undefined;

  constructor(private readonly parts: StartupParts) {}

  onModuleInit(): Promise<void> {
    return this.check();
  }

  /**
   * Checks once, however often it is called.
   * @throws the problem, or StartupError when there are several
   */
  check(): Promise<void> {
    return (this.checked ??= this.run());
  }

  private async run(): Promise<void> {
    const { options, names, explorer, subscriptions } = this.parts;
    const discovery = explorer.explore();
    const taken = names.problemOf(options.name);
    const problems = [...this.parts.problems, ...(taken ? [taken] : []), ...discovery.problems];
    if (!problems.some(isAboutDataSource)) await this.checkDatabase(problems);
    const error = startupError(problems);
    if (error) throw error;
    const { onStepEvent } = options;
    if (onStepEvent) {
      subscriptions.connectFunction('onStepEvent', (event) => onStepEvent(event as StepEvent), STEP_EVENT_TYPES);
    }
    subscriptions.connect(discovery.listeners);
    for (const warning of discovery.warnings) this.parts.logger.warn(warning);
  }

  private async checkDatabase(problems: CycloneError[]): Promise<void> {
    const { dataSource } = this.parts.engine.connections;
    const foreign = dataSourceProblem(typeOf(dataSource));
    if (foreign) {
      problems.push(foreign);
      return;
    }
    if (!dataSource.isInitialized) {
      problems.push(
        new InvalidOptionError(
          'dataSource',
          'must be initialized: await dataSource.initialize() before the application starts.',
        ),
      );
      return;
    }
    if (this.parts.engine.connections.isNative) {
      problems.push(nativeDriverProblem());
      return;
    }
    const { worker } = this.parts.options;
    const pool = worker === false ? undefined : poolProblem(this.parts.engine.connections.poolSize);
    if (pool) problems.push(pool);
    try {
      await this.askDatabase(problems);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      problems.push(
        CycloneError.is(error)
          ? error
          : new CycloneError(`The database could not be asked whether Cyclone can work with it: ${message}`, {
              cause: error,
            }),
      );
    }
  }

  private async askDatabase(problems: CycloneError[]): Promise<void> {
    const { engine, options, logger } = this.parts;
    const { schema, migrationsRun } = options;
    const { dataSource } = engine.connections;
    const refused = problems.length > 0;
    // An application that will not start changes nothing.
    if (migrationsRun && !refused) await migrate(dataSource, { schema, log: (message) => logger.log(message) });
    const query: Query = (sql, values) => dataSource.query(sql, values);
    // A process that executes nothing may belong to somebody who only looks.
    const kind = options.worker === false ? 'viewer' : 'worker';
    const found = await checkServer(query, schema, kind);
    problems.push(...found.filter((problem) => !(migrationsRun && refused && SchemaVersionError.is(problem))));
    await this.lookForPooler();
  }

  /** Works on behind a pooler that the options do not say, without what cannot work there. */
  private async lookForPooler(): Promise<void> {
    const { engine, options, logger } = this.parts;
    if (!(await sharesSessions(engine.connections))) return;
    engine.connections.shareSessions();
    if (!options.preparedStatements && !options.listen) return;
    logger.warn(
      'The DataSource leads through a pooler in transaction mode, so statements are not prepared and other processes are heard of by ' +
        'polling only. Say so with preparedStatements: false and listen: false, or let the DataSource connect directly or through a pooler in ' +
        'session mode, which is faster.',
    );
  }
}
