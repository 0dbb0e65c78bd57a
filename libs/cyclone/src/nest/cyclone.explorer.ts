import { types } from 'node:util';
import type { DiscoveryService } from '@nestjs/core';
import type { CycloneError } from '../model/errors/cyclone-error.js';
import { DuplicateHandlerError, InvalidOptionError, UnknownHandlerError } from '../model/errors/setup-errors.js';
import type { HandlerDefaults } from '../model/options.js';
import {
  className,
  getHandlerMetadata,
  getWorkflowMetadata,
  listHandlers,
  type HandlerLookup,
  type HandlerMetadata,
} from '../graph/metadata.js';
import type { WorkflowDefinition } from '../graph/workflow.js';
import { checkHandler, checkListener, checkWorkflow, scopeProblem } from './check-handler.js';
import type { CycloneNames } from './cyclone-names.js';
import type {
  DiscoveredHandler,
  DiscoveredListener,
  DiscoveredWorkflow,
  Discovery,
  HostedMethod,
} from './discovery.js';
import { hasPipes } from './handler-enhancers.js';
import { listListeners } from './listener-metadata.js';
import { providerHosts, type ProviderHost } from './provider-host.js';

/** Finds what the providers of the application hold for one Cyclone. Starts nothing and keeps nothing. */
export class CycloneExplorer {
  constructor(
    private readonly name: string | undefined,
    private readonly discovery: Pick<DiscoveryService, 'getProviders' | 'getControllers'>,
    private readonly names: CycloneNames,
    private readonly defaults: HandlerDefaults,
  ) {}

  /** Looks at all providers that there are now; those of lazily loaded modules as well. */
  explore(): Discovery {
    const found = new Findings();
    for (const host of providerHosts(this.discovery.getProviders())) {
      this.findHandlers(host, found);
      this.findWorkflow(host, found);
      this.findListeners(host, found);
    }
    for (const { metatype } of this.discovery.getControllers()) this.refuseController(metatype, found);
    return found.close();
  }

  /** A handler that nobody serves would leave its steps waiting for ever. */
  private refuseController(metatype: unknown, found: Findings): void {
    const prototype: unknown = typeof metatype === 'function' ? metatype.prototype : undefined;
    if (typeof prototype !== 'object' || prototype === null) return;
    for (const [key, { metadata }] of listHandlers(prototype)) {
      const where = `${className(prototype)}.${String(key)}`;
      if (this.owns(metadata.options.cyclone, where, found)) found.problems.push(controllerProblem(where));
    }
  }

  private findHandlers(host: ProviderHost, found: Findings): void {
    let ofInstance: ReadonlyMap<unknown, HandlerLookup> = new Map();
    for (const [index, prototype] of host.prototypes.entries()) {
      const lookups = listHandlers(prototype);
      for (const [key, lookup] of lookups) {
        const method = methodOf(host, prototype, key);
        const { kind, options } = lookup.metadata;
        if (ofInstance.get(key)?.metadata.kind === kind || !this.owns(options.cyclone, method.where, found)) continue;
        if (!isOverridden(lookup)) {
          const own = (prototype as Methods)[key];
          if (hasPipes(own)) found.problems.push(pipesProblem(method.where));
          if (types.isGeneratorFunction(own)) found.problems.push(generatorProblem(method.where));
          this.addHandler(method, lookup.metadata, found);
        }
        // An override that is not decorated loses the handler, unless the class is provided for the one that has it.
        else if (!host.prototypes.slice(index + 1).some((token) => servesAs(token, key, lookup.metadata))) {
          found.problems.push(overrideProblem(lookup, key));
        }
      }
      ofInstance = new Map([...lookups].filter(([, lookup]) => !isOverridden(lookup)));
    }
  }

  private addHandler(method: HostedMethod, metadata: HandlerMetadata, found: Findings): void {
    const { host, key, where } = method;
    if (host.instance && typeof (host.instance as Methods)[key] !== 'function') {
      found.warnings.push(`${where} is not served: what the application provides in its place has no such method.`);
      return;
    }
    found.claims.push([metadata.kind, where, host.module]);
    const options = checkHandler(found.problems, metadata, this.defaults, where);
    if (options) found.handlers.push({ ...method, metadata, options });
  }

  private findWorkflow(host: ProviderHost, found: Findings): void {
    for (const prototype of host.prototypes) {
      const target: unknown = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value;
      const metadata = getWorkflowMetadata(target);
      if (!metadata || !this.owns(metadata.options.cyclone, className(prototype), found)) continue;
      const workflow: DiscoveredWorkflow = {
        name: metadata.name,
        target: target as DiscoveredWorkflow['target'],
        instance: host.instance as WorkflowDefinition<unknown, unknown>,
        options: metadata.options,
      };
      if (metadata.name !== '') found.workflowClaims.push([metadata.name, className(prototype), host.module]);
      if (checkWorkflow(found.problems, workflow, className(prototype))) found.workflows.push(workflow);
      return;
    }
  }

  private findListeners(host: ProviderHost, found: Findings): void {
    const keys = new Set<string | symbol>();
    for (const prototype of host.prototypes) {
      for (const [key, metadata] of listListeners(prototype)) {
        const method = methodOf(host, prototype, key);
        if (keys.has(key) || !this.owns(metadata.cyclone, method.where, found)) continue;
        keys.add(key);
        if (!checkListener(found.problems, metadata, method.where)) continue;
        if (!host.instance) found.problems.push(scopeProblem('@OnStepEvent()', method.where));
        else if (typeof (host.instance as Methods)[key] === 'function') found.listeners.push({ ...method, metadata });
      }
    }
  }

  /** Whether it belongs to this Cyclone. What names a Cyclone that nobody has would be lost in silence. */
  private owns(cyclone: string | undefined, where: string, found: Findings): boolean {
    if (cyclone === this.name) return true;
    if (!this.names.has(cyclone)) found.problems.push(this.names.unknownProblem(cyclone, where));
    return false;
  }
}

type Methods = Record<string | symbol, unknown>;

/** Who wants a name. */
type Claim = readonly [name: string, where: string, module: string];

/** What one exploration has found so far. */
class Findings {
  readonly handlers: DiscoveredHandler[] = [];
  readonly claims: Claim[] = [];
  readonly workflows: DiscoveredWorkflow[] = [];
  readonly workflowClaims: Claim[] = [];
  readonly listeners: DiscoveredListener[] = [];
  readonly problems: CycloneError[] = [];
  readonly warnings: string[] = [];

  close(): Discovery {
    const { listeners, problems, warnings } = this;
    problems.push(...duplicates(this.claims), ...duplicates(this.workflowClaims));
    return {
      handlers: new Map(this.handlers.map((handler) => [handler.metadata.kind, handler])),
      workflows: new Map(this.workflows.map((workflow) => [workflow.target, workflow])),
      listeners,
      problems,
      warnings,
    };
  }
}

function methodOf(host: ProviderHost, prototype: object, key: string | symbol): HostedMethod {
  return { host, key, where: `${className(prototype)}.${String(key)}` };
}

const isOverridden = ({ overriddenBy }: HandlerLookup): boolean => overriddenBy !== undefined;

function controllerProblem(where: string): UnknownHandlerError {
  return new UnknownHandlerError(where, 'It is a method of a controller. Move it to a provider.');
}

function pipesProblem(where: string): InvalidOptionError {
  return new InvalidOptionError(
    `@UsePipes() on ${where}`,
    'has no effect on a handler. Name the DTO class of its input: { input: … } revives and validates it.',
  );
}

function generatorProblem(where: string): UnknownHandlerError {
  return new UnknownHandlerError(
    where,
    'It is a generator function, whose body would never run. Make it an async function that returns an array.',
  );
}

function servesAs(token: object, key: string | symbol, metadata: HandlerMetadata): boolean {
  const lookup = getHandlerMetadata(token, key);
  return lookup?.metadata === metadata && !isOverridden(lookup);
}

function overrideProblem({ metadata, overriddenBy }: HandlerLookup, key: string | symbol): UnknownHandlerError {
  return new UnknownHandlerError(
    `${overriddenBy}.${String(key)}`,
    `It overrides ${metadata.owner} and must be decorated again with @Step() or @Action().`,
  );
}

/** An error for each name that is claimed more than once, with every claimant; their modules where only these tell them apart. */
function duplicates(claims: readonly Claim[]): CycloneError[] {
  const byName = new Map<string, { where: string; module: string }[]>();
  for (const [name, where, module] of claims) {
    const claimants = byName.get(name);
    if (claimants) claimants.push({ where, module });
    else byName.set(name, [{ where, module }]);
  }
  return [...byName]
    .filter(([, claimants]) => claimants.length > 1)
    .map(([name, claimants]) => {
      const distinct = new Set(claimants.map(({ where }) => where)).size === claimants.length;
      return new DuplicateHandlerError(
        name,
        claimants.map(({ where, module }) => (distinct ? where : `${where} (provided in ${module})`)),
      );
    });
}
