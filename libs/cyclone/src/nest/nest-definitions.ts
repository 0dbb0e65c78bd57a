import { UnknownHandlerError } from '../model/errors/setup-errors.js';
import type { HandlerDefaults, Type } from '../model/options.js';
import type { PlanLimits } from '../graph/plan-context.js';
import { getWorkflowMetadata } from '../graph/metadata.js';
import type { WorkflowDefinition } from '../graph/workflow.js';
import type { Definitions, ResolvedWorkflow } from '../client/definitions.js';
import type { ResolvedCycloneOptions } from './cyclone-options.js';
import type { CycloneExplorer } from './cyclone.explorer.js';
import { cycloneLabel } from './cyclone-names.js';
import type { WorkerStart } from './worker-start.js';

/** The workflows of an application, for the clients of one Cyclone. */
export class NestDefinitions implements Definitions {
  readonly defaults: HandlerDefaults;
  readonly limits: PlanLimits;
  private readonly known = new Map<unknown, ResolvedWorkflow>();

  constructor(
    private readonly options: Pick<ResolvedCycloneOptions, 'name' | 'defaults' | 'limits'>,
    private readonly explorer: CycloneExplorer,
    private readonly workerStart: WorkerStart,
  ) {
    this.defaults = options.defaults;
    this.limits = options.limits;
  }

  // oxlint-disable-next-line typescript/no-explicit-any -- any workflow
  workflow(workflow: Type<WorkflowDefinition<any, any>>): ResolvedWorkflow {
    // A class that is not known yet may be of a module that has been loaded since.
    if (!this.known.has(workflow)) this.explore();
    const found = this.known.get(workflow);
    if (found) return found;
    throw new UnknownHandlerError(String((workflow as { name?: string } | undefined)?.name), this.remedy(workflow));
  }

  holdUp(): string | undefined {
    return this.workerStart.holdUp();
  }

  private explore(): void {
    for (const [target, { name, instance, options }] of this.explorer.explore().workflows) {
      this.known.set(target, {
        name,
        instance,
        ...(options.input === undefined ? {} : { input: options.input }),
        ...(options.runDeadline === undefined ? {} : { runDeadline: options.runDeadline }),
      });
    }
  }

  private remedy(workflow: unknown): string {
    const metadata = getWorkflowMetadata(workflow);
    if (!metadata) return 'Decorate the class with @Workflow(), and list it among the providers of a module.';
    if (metadata.options.cyclone !== this.options.name) {
      return `The workflow belongs to ${cycloneLabel(metadata.options.cyclone)}, and this client to ${cycloneLabel(this.options.name)}.`;
    }
    return 'List the class among the providers of a module that the application imports.';
  }
}
