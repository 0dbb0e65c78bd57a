// oxlint-disable typescript/no-explicit-any -- the type of the input comes from the options or from define
import { Injectable } from '@nestjs/common';
import type { Type } from '../../model/options.js';
import { setWorkflowMetadata } from '../../graph/metadata.js';
import type { WorkflowDefinition, WorkflowOptions } from '../../graph/workflow.js';

/** How Nest marks a class as a provider. */
const INJECTABLE = '__injectable__';

/**
 * Makes a class a workflow and a provider; its constructor may inject what it likes, but `define` must be pure. The name is
 * stored with every run, so it is written here and never that of the class, which a build tool may change (R40).
 */
export function Workflow<In = any>(options: WorkflowOptions<In>) {
  return <C extends Type<WorkflowDefinition<In, any>>>(target: C): void => {
    // @Injectable() below this decorator may have options of its own, which a second one would replace.
    if (!Reflect.hasOwnMetadata(INJECTABLE, target)) Injectable()(target);
    const given: Partial<WorkflowOptions<In>> | undefined = options; // JavaScript may leave all of it out
    setWorkflowMetadata(target, { name: given?.name ?? '', options: given ?? {} });
  };
}
