import type { CycloneError } from '../model/errors/cyclone-error.js';
import { InvalidOptionError } from '../model/errors/setup-errors.js';
import type { PayloadCodec } from '../model/payload-codec.js';
import { PlanContext } from '../graph/plan-context.js';
import { checkSchemaName } from '../store/identifier.js';
import { RETENTION_OPTIONS, resolveRetention } from '../worker/retention-options.js';
import { resolveWorkerOptions, type WorkerOptions } from '../worker/worker-options.js';
import { checkDefaults } from './check-handler.js';
import { checkEach } from './collect-problems.js';
import type { CycloneOptions, ResolvedCycloneOptions } from './cyclone-options.js';

const OPTIONS = [
  'name',
  'dataSource',
  'schema',
  'migrationsRun',
  'worker',
  'defaults',
  'limits',
  'retention',
  'codec',
  'preparedStatements',
  'listen',
  'onStepEvent',
] as const satisfies readonly (keyof CycloneOptions)[];
const WORKER_OPTIONS = [
  'id',
  'queues',
  'leaseTtl',
  'stallLimit',
  'pollInterval',
  'maxReclaims',
  'shutdownTimeout',
  'autoStart',
] as const satisfies readonly (keyof WorkerOptions)[];
const LIMITS = ['maxNodes', 'maxPayloadBytes'] as const;

/**
 * Checks the options of a module and fills in the defaults. Where something is wrong the answer has the default: the start is
 * refused later, together with all the other problems (R22).
 * @param name the static name of the module, which its tokens are made of
 */
export function resolveCycloneOptions(
  given: CycloneOptions | undefined,
  name: string | undefined,
): { readonly options: ResolvedCycloneOptions; readonly problems: readonly CycloneError[] } {
  const problems: CycloneError[] = [];
  const options = given ?? {};
  checkEach<CycloneOptions>(problems, options, OPTIONS, (one) => checkOption(problems, one, name));
  const resolved: ResolvedCycloneOptions = {
    name,
    dataSource: isDataSource(options.dataSource) ? options.dataSource : undefined,
    schema: options.schema ?? 'public',
    migrationsRun: options.migrationsRun ?? false,
    worker: options.worker ?? {},
    defaults: options.defaults ?? {},
    limits: options.limits ?? {},
    retention: options.retention,
    codec: options.codec,
    preparedStatements: options.preparedStatements ?? true,
    listen: options.listen ?? true,
    onStepEvent: options.onStepEvent,
  };
  return {
    options: problems.length === 0 ? resolved : { ...resolved, ...harmless(options) },
    problems,
  };
}

/** In place of what may be wrong; what is refused anyway needs no more than to be looked at. */
function harmless({ worker }: CycloneOptions): Partial<ResolvedCycloneOptions> {
  return {
    schema: 'public',
    codec: undefined,
    worker: worker === false ? false : {},
    defaults: {},
    limits: {},
    retention: undefined,
    onStepEvent: undefined,
  };
}

function checkOption(problems: CycloneError[], one: Partial<CycloneOptions>, name: string | undefined): void {
  const { worker, defaults, limits, retention } = one;
  if (one.schema !== undefined) checkSchemaName(one.schema);
  if (defaults !== undefined) checkDefaults(problems, defaults);
  if (limits !== undefined) {
    checkEach(problems, limits, LIMITS, (limit) => new PlanContext({}, limit), { prefix: 'limits.' });
  }
  if (retention !== undefined) {
    checkEach(problems, retention, RETENTION_OPTIONS, resolveRetention, { prefix: 'retention.' });
  }
  if (worker !== undefined && worker !== false) {
    if (typeof worker !== 'object' || worker === null) {
      throw new InvalidOptionError(
        'worker',
        'must be an object of options, or false for a process that executes nothing.',
      );
    }
    checkEach(problems, worker, WORKER_OPTIONS, checkWorkerOption, { prefix: 'worker.' });
  }
  checkName(one.name, name);
  checkDataSource(one.dataSource);
  checkCodec(one.codec);
  checkFlags(one, ['migrationsRun', 'preparedStatements', 'listen'], '');
  if (one.onStepEvent !== undefined && typeof one.onStepEvent !== 'function') {
    throw new InvalidOptionError('onStepEvent', 'must be a function.');
  }
}

function checkWorkerOption(one: Partial<WorkerOptions>): void {
  checkFlags(one, ['autoStart'], 'worker.');
  resolveWorkerOptions(one);
}

function checkName(given: unknown, name: string | undefined): void {
  if (given !== undefined && given !== name) {
    throw new InvalidOptionError(
      'name',
      `must stand beside the factory, as in forRootAsync({ name: ${JSON.stringify(given)}, useFactory }): the tokens are made of it.`,
    );
  }
}

function checkDataSource(dataSource: unknown): void {
  if (!isDataSource(dataSource)) {
    throw new InvalidOptionError('dataSource', 'must be a DataSource of TypeORM, or the name of one.');
  }
}

function isDataSource(given: unknown): given is CycloneOptions['dataSource'] {
  if (given === undefined) return true;
  return typeof given === 'string'
    ? given !== ''
    : typeof given === 'object' && given !== null && 'createQueryRunner' in given;
}

function checkCodec(codec: unknown): void {
  if (codec === undefined) return;
  const { encode, decode } = (codec ?? {}) as Partial<PayloadCodec>;
  if (typeof encode !== 'function' || typeof decode !== 'function') {
    throw new InvalidOptionError('codec', 'must be an object with the functions encode and decode.');
  }
}

function checkFlags<T extends object>(one: T, flags: readonly (keyof T & string)[], prefix: string): void {
  for (const flag of flags) {
    if (one[flag] !== undefined && typeof one[flag] !== 'boolean') {
      throw new InvalidOptionError(`${prefix}${flag}`, 'must be true or false.');
    }
  }
}
